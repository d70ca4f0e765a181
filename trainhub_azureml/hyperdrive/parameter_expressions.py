"""From what the value of a hyperparameter is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from trainhub_azureml.exceptions import UserErrorException
from trainhub_sdk.job.metric_values import list_of


class ParameterExpression:
    """`options`: the values of a `choice`, () for all others; `size`: how many values there are, None if
    there is no end of them."""

    def __init__(
        self, name: str, draw: Callable[[Random], Any], options: Sequence[Any] = (), size: int | None = None
    ) -> None:
        self.name = name
        self.draw = draw
        self.options = tuple(options)
        self.size = size

    def __repr__(self) -> str:
        return f"{self.name}{self.options!r}" if self.options else f"{self.name}(…)"


def choice(*options: Any) -> ParameterExpression:
    """One of the values, given one by one, or as one list, range or array."""
    values = list_of(options[0]) if len(options) == 1 else list(options)
    if not values:
        raise UserErrorException("choice: give at least one value.")
    # Scalars of NumPy as plain numbers, which JSON can hold.
    values = [value.item() if callable(getattr(value, "item", None)) else value for value in values]
    size = len(set(map(repr, values)))
    return ParameterExpression("choice", lambda random: random.choice(values), values, size)


def randint(upper: int) -> ParameterExpression:
    """A whole number from 0 to `upper` - 1."""
    if int(upper) < 1:
        raise UserErrorException(f"randint: upper={upper} is not 1 or more.")
    return ParameterExpression("randint", lambda random: random.randrange(int(upper)), size=int(upper))


def uniform(min_value: float, max_value: float) -> ParameterExpression:
    """Any number between the two."""
    return _between("uniform", min_value, max_value, lambda number: number)


def loguniform(min_value: float, max_value: float) -> ParameterExpression:
    """exp(x), with x between the two."""
    return _between("loguniform", min_value, max_value, math.exp)


def quniform(min_value: float, max_value: float, q: float) -> ParameterExpression:
    """A multiple of `q`, near a number between the two."""
    return _between("quniform", min_value, max_value, _rounding("quniform", q))


def qloguniform(min_value: float, max_value: float, q: float) -> ParameterExpression:
    """A multiple of `q`, near exp(x) with x between the two."""
    nearest = _rounding("qloguniform", q)
    return _between("qloguniform", min_value, max_value, lambda number: nearest(math.exp(number)))


def normal(mu: float, sigma: float) -> ParameterExpression:
    """A number of the normal distribution."""
    return _around("normal", mu, sigma, lambda number: number)


def lognormal(mu: float, sigma: float) -> ParameterExpression:
    """exp(x), with x of the normal distribution."""
    return _around("lognormal", mu, sigma, math.exp)


def qnormal(mu: float, sigma: float, q: float) -> ParameterExpression:
    """A multiple of `q`, near a number of the normal distribution."""
    return _around("qnormal", mu, sigma, _rounding("qnormal", q))


def qlognormal(mu: float, sigma: float, q: float) -> ParameterExpression:
    """A multiple of `q`, near exp(x) with x of the normal distribution."""
    nearest = _rounding("qlognormal", q)
    return _around("qlognormal", mu, sigma, lambda number: nearest(math.exp(number)))


def _between(name: str, low: float, high: float, convert: Callable[[float], float]) -> ParameterExpression:
    if low > high:
        raise UserErrorException(f"{name}: min_value={low} is greater than max_value={high}.")
    return ParameterExpression(name, lambda random: convert(random.uniform(low, high)))


def _around(name: str, mu: float, sigma: float, convert: Callable[[float], float]) -> ParameterExpression:
    if sigma < 0:
        raise UserErrorException(f"{name}: sigma={sigma} is negative.")
    return ParameterExpression(name, lambda random: convert(random.gauss(mu, sigma)))


def _rounding(name: str, q: float) -> Callable[[float], float]:
    if q <= 0:
        raise UserErrorException(f"{name}: q={q} is not positive.")
    # A whole `q` gives whole numbers, which scripts read by `type=int`.
    return lambda number: round(number / q) * q
