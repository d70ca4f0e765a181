"""The space of hyperparameters of an experiment: constants, and ranges from which a search takes values."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trainhub_sdk.determined.config import ERROR, ExperimentConfig

_KINDS = ("const", "int", "double", "log", "categorical")
FIELD = "hyperparameters"


class Range(NamedTuple):
    """The values of one hyperparameter. `path`: its names from the top; `grid_count`: how many of
    them a grid has, None if it is not said."""

    path: tuple[str, ...]
    kind: str
    low: float = 0
    high: float = 0
    base: float = 10.0
    grid_count: int | None = None
    choices: tuple[Any, ...] = ()

    def sample(self, chance: random.Random) -> Any:
        if self.kind == "categorical":
            return chance.choice(self.choices)
        if self.kind == "int":
            return chance.randint(int(self.low), int(self.high))
        return self._scale(chance.uniform(self.low, self.high))

    def grid(self) -> list[Any]:
        """Returns the values at even distances, with both ends; one alone is in the middle."""
        if self.kind == "categorical":
            return list(self.choices)
        count = self.grid_count or 1
        if self.kind == "int":
            count = min(count, int(self.high - self.low) + 1)
        step = (self.high - self.low) / (count - 1) if count > 1 else 0.0
        start = self.low if count > 1 else (self.low + self.high) / 2
        return [self._scale(start + number * step) for number in range(count)]

    def _scale(self, value: float) -> Any:
        if self.kind == "log":
            return self.base**value
        return math.floor(value + 0.5) if self.kind == "int" else value


class SearchSpace(NamedTuple):
    """`constants`: the hyperparameters that are no range, nested as in the configuration."""

    constants: Mapping[str, Any]
    ranges: tuple[Range, ...]

    def with_values(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """Returns all hyperparameters, with a value for each range."""
        complete = _copy(self.constants)
        for place, value in zip(self.ranges, values):
            inner = complete
            for name in place.path[:-1]:
                inner = inner.setdefault(name, {})
            inner[place.path[-1]] = value
        return complete

    def sample(self, chance: random.Random) -> dict[str, Any]:
        return self.with_values(tuple(place.sample(chance) for place in self.ranges))

    def grid(self) -> Iterator[dict[str, Any]]:
        """Yields every combination; the last hyperparameter changes first."""
        for values in itertools.product(*(place.grid() for place in self.ranges)):
            yield self.with_values(values)

    def grid_size(self) -> int:
        size = 1
        for place in self.ranges:
            size *= len(place.grid())
        return size


def read_space(config: ExperimentConfig, *, for_grid: bool) -> SearchSpace:
    """`for_grid`: each range must say how many values it has. What is wrong is an error among the
    findings."""
    ranges: list[Range] = []
    constants = _read_level(config, config.mapping(FIELD), (), ranges, for_grid)
    return SearchSpace(constants, tuple(ranges))


def _read_level(
    config: ExperimentConfig,
    values: Mapping[str, Any],
    path: tuple[str, ...],
    ranges: list[Range],
    for_grid: bool,
) -> dict[str, Any]:
    """Returns the constants of one level. Adds its ranges."""
    constants: dict[str, Any] = {}
    for name, value in values.items():
        own = (*path, str(name))
        kind = value.get("type") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping):
            constants[str(name)] = value
        elif kind == "const":
            constants[str(name)] = value.get("val")
        elif kind in _KINDS:
            place = _read_range(config, own, value, str(kind), for_grid)
            ranges += [place] if place else []
        else:
            constants[str(name)] = _read_level(config, value, own, ranges, for_grid)
    return constants


def _read_range(
    config: ExperimentConfig, path: tuple[str, ...], value: Mapping[str, Any], kind: str, for_grid: bool
) -> Range | None:
    field = ".".join((FIELD, *path))
    if kind == "categorical":
        choices = value.get("vals")
        if isinstance(choices, list) and choices:
            return Range(path, kind, choices=tuple(choices))
        config.add(ERROR, field, "needs vals, a list of values.")
        return None
    numbers = [value.get("minval"), value.get("maxval"), value.get("base", 10.0)]
    if not all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
        config.add(ERROR, field, "needs the numbers minval and maxval.")
        return None
    low, high, base = numbers
    if low > high or (kind == "int" and (low != int(low) or high != int(high))):
        config.add(ERROR, field, "minval must not be larger than maxval, and of an int both are whole.")
        return None
    count = value.get("count")
    if for_grid and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        config.add(ERROR, field, "needs count, the number of its values in the grid.")
        return None
    return Range(path, kind, low, high, base, count)


def _copy(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in values.items()}
