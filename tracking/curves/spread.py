"""Mean and spread of runs with the same configuration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.models import Run, RunTag
from tracking.curves import metric_axis
from tracking.curves.curve_query import Axis, SeriesQuery
from tracking.curves.lines import finite_points, metrics_by_run_and_key, start_ms, storage_span
from tracking.metrics import curve_reader
from tracking.metrics.points import FloatArray
from tracking.models import Param
from trainhub_launch.errors import SpecError

PARAMS, TAGS = "params.", "tags."
# Key of the group of runs without the param.
NO_VALUE = ""
Groups = Mapping[str, Sequence[Run]]


@dataclass(frozen=True)
class SpreadBand:
    """`low` and `high` are the mean minus and plus the standard deviation over the runs with a value at that
    x."""

    group: str
    runs: tuple[Run, ...]
    key: str
    x: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray

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


def group_runs_by(runs: Sequence[Run], by: str) -> Groups:
    """Returns the runs by their value of `by`, which is params.NAME or tags.NAME. Raises SpecError."""
    table = PARAMS if by.startswith(PARAMS) else TAGS
    name = by.removeprefix(table)
    if not by.startswith(table) or not name:
        raise SpecError("group", "must be params.NAME or tags.NAME, such as params.lr")
    model: type[Param] | type[RunTag] = Param if table == PARAMS else RunTag
    rows = model.objects.filter(run__in=[run.pk for run in runs], key=name)
    values = dict(rows.values_list("run_id", "value"))
    result: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        result[values.get(run.pk, NO_VALUE)].append(run)
    return result


def spread_bands(groups: Groups, query: SeriesQuery) -> list[SpreadBand]:
    """Returns a band for each group and metric that one of its runs has, metric by metric."""
    rows = metrics_by_run_and_key([run for runs in groups.values() for run in runs], query.keys)
    result = []
    for key in query.keys:
        for value, runs in groups.items():
            members = tuple(run for run in runs if (run.pk, key) in rows)
            band = _band(value, members, key, query) if members else None
            if band is not None:
                result.append(band)
    return result


def _band(group: str, runs: tuple[Run, ...], key: str, query: SeriesQuery) -> SpreadBand | None:
    curves = [curve for run in runs if len((curve := _curve(run, key, query))[0])]
    if not curves:
        return None
    # A common grid, because the runs of a group seldom log at exactly the same steps.
    grid, half = _grid([x for x, _ in curves], query.pixels)
    values = np.array([_resample(grid, half, x, y) for x, y in curves])
    counts = (~np.isnan(values)).sum(axis=0)
    has_value = counts > 0
    grid, values, counts = grid[has_value], values[:, has_value], counts[has_value]
    mean = np.nansum(values, axis=0) / counts
    # The sample standard deviation, because the seeds are a sample. A single run has no spread.
    spread = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / np.maximum(counts - 1, 1))
    positions = grid.astype(np.int64) if query.axis is Axis.STEP and (grid % 1 == 0).all() else grid
    return SpreadBand(group, runs, key, positions, mean, mean - spread, mean + spread)


def _curve(run: Run, key: str, query: SeriesQuery) -> tuple[FloatArray, FloatArray]:
    """Returns a run's curve within the span, in the units of the axis."""
    origin = start_ms(run) if query.axis is Axis.RELATIVE else 0
    x, y = _ascending_points(run, key, query)
    start, end = storage_span(query, origin)
    first = 0 if start is None else int(np.searchsorted(x, start, "left"))
    last = len(x) if end is None else int(np.searchsorted(x, end, "right"))
    x, y = x[first:last], y[first:last]
    return (x, y) if query.axis in (Axis.STEP, Axis.METRIC) else ((x - origin) / 1000, y)


def _ascending_points(run: Run, key: str, query: SeriesQuery) -> tuple[FloatArray, FloatArray]:
    if query.axis is not Axis.METRIC:
        return finite_points(curve_reader.curve_history(run.pk, key), query.axis)
    points = curve_reader.histories(run.pk, {key, query.x_key})
    x, y = metric_axis.join(points[query.x_key], points[key])
    # Means are taken at each x, so the order of the steps does not matter.
    order = np.argsort(x, kind="stable")
    order = order[np.isfinite(y[order])]
    return x[order], y[order]


def _grid(places: Sequence[FloatArray], pixels: int) -> tuple[FloatArray, float]:
    """Returns all x of the runs or, if there are more than pixels, the centres of pixels; and half a pixel's
    width."""
    result = np.unique(np.concatenate(places))
    if len(result) <= pixels:
        return result, 0.0
    half = (result[-1] - result[0]) / pixels / 2
    return result[0] + half * (2 * np.arange(pixels) + 1), float(half)


def _resample(grid: FloatArray, half: float, x: FloatArray, y: FloatArray) -> FloatArray:
    """Returns a run's mean value at each grid position, interpolated where it has none, and NaN beyond its
    ends."""
    # A point on the border between two pixels belongs to the left one.
    places = np.minimum(np.searchsorted(grid + half, x, "left"), len(grid) - 1)
    counts = np.bincount(places, minlength=len(grid))
    sums = np.bincount(places, weights=y, minlength=len(grid))
    members = counts > 0
    return np.interp(grid, grid[members], sums[members] / counts[members], left=np.nan, right=np.nan)
