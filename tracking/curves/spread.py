"""Runs that were configured alike, as one line: their mean, and how far they lie apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.models import Run, RunTag
from tracking.curves.curve_query import Asked, Axis
from tracking.curves.lines import began_ms, metrics_of, ordered, span_of
from tracking.metrics import curve_reader
from tracking.metrics.points import Real
from tracking.models import Param
from trainhub_launch.errors import SpecError

PARAMS, TAGS = "params.", "tags."
NONE = ""
"""The group of runs that have no such param."""
Groups = Mapping[str, Sequence[Run]]


@dataclass(frozen=True)
class Band:
    """`low` and `high`: the mean less and plus the standard deviation over the runs that have a value
    there."""

    group: str
    runs: tuple[Run, ...]
    key: str
    x: Real
    mean: Real
    low: Real
    high: Real

    def to_json(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "runs": [run.number for run in self.runs],
            "key": self.key,
            "x": self.x,
            "mean": self.mean,
            "low": self.low,
            "high": self.high,
        }


def groups_of(runs: Sequence[Run], by: str) -> Groups:
    """`by`: params.NAME or tags.NAME. Value -> runs, in the order of the runs. Raises SpecError."""
    table = PARAMS if by.startswith(PARAMS) else TAGS
    name = by.removeprefix(table)
    if not by.startswith(table) or not name:
        raise SpecError("group", "must be params.NAME or tags.NAME, such as params.lr")
    model: type[Param] | type[RunTag] = Param if table == PARAMS else RunTag
    rows = model.objects.filter(run__in=[run.pk for run in runs], key=name)
    values = dict(rows.values_list("run_id", "value"))
    found: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        found[values.get(run.pk, NONE)].append(run)
    return found


def bands(groups: Groups, asked: Asked) -> list[Band]:
    """A band per group and metric that any of its runs has, metric by metric."""
    rows = metrics_of([run for runs in groups.values() for run in runs], asked.keys)
    found = []
    for key in asked.keys:
        for value, runs in groups.items():
            held = tuple(run for run in runs if (run.pk, key) in rows)
            band = _band(value, held, key, asked) if held else None
            if band is not None:
                found.append(band)
    return found


def _band(group: str, runs: tuple[Run, ...], key: str, asked: Asked) -> Band | None:
    curves = [curve for run in runs if len((curve := _curve(run, key, asked))[0])]
    if not curves:
        return None
    grid, half = _grid([x for x, _ in curves], asked.pixels)
    values = np.array([_on(grid, half, x, y) for x, y in curves])
    known = (~np.isnan(values)).sum(axis=0)
    kept = known > 0
    grid, values, known = grid[kept], values[:, kept], known[kept]
    mean = np.nansum(values, axis=0) / known
    # Of a sample: seeds are some of the many that could have been drawn. One run alone has no spread.
    spread = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / np.maximum(known - 1, 1))
    shown = grid.astype(np.int64) if asked.axis is Axis.STEP and (grid % 1 == 0).all() else grid
    return Band(group, runs, key, shown, mean, mean - spread, mean + spread)


def _curve(run: Run, key: str, asked: Asked) -> tuple[Real, Real]:
    """In the units of the axis, within the span."""
    origin = began_ms(run) if asked.axis is Axis.RELATIVE else 0
    x, y = ordered(curve_reader.history(run.pk, key), asked.axis)
    start, end = span_of(asked, origin)
    first = 0 if start is None else int(np.searchsorted(x, start, "left"))
    last = len(x) if end is None else int(np.searchsorted(x, end, "right"))
    x, y = x[first:last], y[first:last]
    return (x, y) if asked.axis is Axis.STEP else ((x - origin) / 1000, y)


def _grid(places: Sequence[Real], pixels: int) -> tuple[Real, float]:
    """Every place where a run has a value, or where those are many, one for each pixel; and half of its
    width."""
    found = np.unique(np.concatenate(places))
    if len(found) <= pixels:
        return found, 0.0
    half = (found[-1] - found[0]) / pixels / 2
    return found[0] + half * (2 * np.arange(pixels) + 1), float(half)


def _on(grid: Real, half: float, x: Real, y: Real) -> Real:
    """The mean of what a run has around each place; between two of its values the line between them; beyond
    its ends NaN."""
    places = np.minimum(np.searchsorted(grid + half, x, "left"), len(grid) - 1)
    counts = np.bincount(places, minlength=len(grid))
    sums = np.bincount(places, weights=y, minlength=len(grid))
    held = counts > 0
    return np.interp(grid, grid[held], sums[held] / counts[held], left=np.nan, right=np.nan)
