"""Which values of the hyperparameters the runs of a search get."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping
from typing import Any

from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.hyperdrive.parameter_expressions import ParameterExpression
from trainhub_azureml.notices import warn

# So often in a row a set of values that was there before is drawn anew where its number is not known, as with
# rounded numbers.
MAX_REPEATS = 1000
_BAYESIAN = ("choice", "uniform", "quniform")


class HyperParameterSampling:
    """`parameter_space`: an expression for each hyperparameter; `properties`: `seed`, a whole number, draws
    the same values each time."""

    def __init__(
        self, parameter_space: Mapping[str, ParameterExpression], properties: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(parameter_space, Mapping) or not parameter_space:
            raise UserErrorException(
                "parameter_space: give a dict of at least one hyperparameter, as {'--lr': uniform(0, 1)}."
            )
        for name, expression in parameter_space.items():
            if not isinstance(expression, ParameterExpression):
                raise UserErrorException(
                    f"parameter_space: {name} is {expression!r}; give an expression, such as "
                    f"choice({expression!r})."
                )
        self.parameter_space = dict(parameter_space)
        self.properties = dict(properties or {})

    @property
    def size(self) -> int | None:
        """How many sets of values there are, None if there is no end of them."""
        product = 1
        for expression in self.parameter_space.values():
            if expression.size is None:
                return None
            product *= expression.size
        return product

    def draw_sets(self, count: int) -> list[dict[str, Any]]:
        """Returns `count` sets of values, all of them different; fewer, if there are not so many."""
        source = random.Random(self.properties.get("seed"))  # noqa: S311 - no secret
        sets: dict[str, dict[str, Any]] = {}
        repeats = 0
        while len(sets) < min(count, self.size or count) and (self.size or repeats < MAX_REPEATS):
            drawn = {name: expression.draw(source) for name, expression in self.parameter_space.items()}
            key = values_text(drawn)
            repeats = repeats + 1 if key in sets else 0
            sets.setdefault(key, drawn)
        return list(sets.values())


class RandomParameterSampling(HyperParameterSampling):
    """Values are drawn one set after another."""


class GridParameterSampling(HyperParameterSampling):
    """All sets of the values of `choice`, in the order in which they are given."""

    def __init__(self, parameter_space: Mapping[str, ParameterExpression]) -> None:
        super().__init__(parameter_space)
        for name, expression in self.parameter_space.items():
            if not expression.options:
                raise UserErrorException(
                    f"GridParameterSampling: {name} is {expression.name}; use choice, or "
                    "RandomParameterSampling."
                )

    def draw_sets(self, count: int) -> list[dict[str, Any]]:
        rows = itertools.product(*(expression.options for expression in self.parameter_space.values()))
        return [dict(zip(self.parameter_space, row)) for row in itertools.islice(rows, count)]


class BayesianParameterSampling(HyperParameterSampling):
    """Drawn at random: no model learns from the runs that have ended."""

    def __init__(
        self, parameter_space: Mapping[str, ParameterExpression], properties: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(parameter_space, properties)
        for name, expression in self.parameter_space.items():
            if expression.name not in _BAYESIAN:
                raise UserErrorException(
                    f"BayesianParameterSampling: {name} is {expression.name}; use one of "
                    f"{', '.join(_BAYESIAN)}, or RandomParameterSampling."
                )

    def draw_sets(self, count: int) -> list[dict[str, Any]]:
        warn("BayesianParameterSampling is not offered: the values are drawn at random.")
        return super().draw_sets(count)


def values_text(values: Mapping[str, Any]) -> str:
    """Returns the values of a run's hyperparameters as JSON."""
    return json.dumps(values, default=str)
