"""Reads curves: all points, a span, or a sample for the pixels of a chart.

Slices are read before blocks: points that are folded in between are then read twice instead of not at all,
and duplicates are removed.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tracking.metrics.downsampling import downsample
from tracking.metrics.points import (
    NO_POINTS,
    VERSION,
    FloatArray,
    IntArray,
    Points,
    PointsError,
    concatenate,
    read_block,
    read_slice,
)
from tracking.models import Metric, MetricBlock, MetricSlice
from workspaces.set_aside import usable

log = logging.getLogger(__name__)
STEP, MS = "step", "ms"


@dataclass(frozen=True)
class DrawnCurve:
    """Points for a chart: `y` is finite, with at most about four points for each pixel; `x` is ascending
    unless it is another metric (`tracking.curves.metric_axis`). `count` is the number of points in the span.
    `odd_x` and `odd` are the positions and values of NaN, inf and -inf."""

    x: FloatArray
    y: FloatArray
    count: int
    odd_x: FloatArray
    odd: FloatArray


def metrics_by_run(run_ids: Collection[str]) -> dict[str, list[Metric]]:
    """Returns the metrics of each run, sorted by key."""
    by_run: dict[str, list[Metric]] = {run_id: [] for run_id in run_ids}
    for metric in Metric.objects.filter(run_id__in=list(run_ids)).order_by("run_id", "key"):
        by_run[metric.run_id].append(metric)
    return by_run


def curve_history(run_id: str, key: str) -> Points:
    """Returns all points of a curve, sorted by time and step."""
    return _sorted_points(_load_points(run_id, key), MS)


def curve(
    run_id: str,
    key: str,
    *,
    pixels: int,
    axis: str = STEP,
    start: float | None = None,
    end: float | None = None,
) -> DrawnCurve:
    """Returns the points whose `axis` (step, or ms: Unix milliseconds) is in the span, with one more on each
    side."""
    points = _load_points(run_id, key, ms=axis == MS)
    if axis == STEP and not _is_rising(points.step):
        # Times are needed to sort points of the same step and to find duplicates.
        points = _load_points(run_id, key)
    points = _sorted_points(points, axis)
    inside = _span(_column(points, axis), start, end)
    x, y = _column(points, axis)[inside].astype(np.float64), points.value[inside]
    finite = np.isfinite(y)
    if finite.all():
        return DrawnCurve(*downsample(x, y, pixels), len(y), NO_POINTS.value, NO_POINTS.value)
    return DrawnCurve(
        *downsample(x[finite], y[finite], pixels), len(y), *non_finite_marks(x[~finite], y[~finite], pixels)
    )


def histories(run_id: str, keys: Collection[str]) -> dict[str, Points]:
    """Returns all points of several curves, each sorted by time and step; shared slices are read once."""
    recent: dict[str, list[Points]] = {key: [] for key in keys}
    for data in (
        MetricSlice.objects.filter(usable(VERSION), run_id=run_id)
        .order_by("id")
        # Slices hold the points of all curves of one request, so they are read once for all keys.
        .values_list("data", flat=True)
    ):
        for key, points in _read_slice(data).items():
            if key in recent:
                recent[key].append(points)
    folded: dict[str, list[Points]] = {key: [] for key in keys}
    blocks = MetricBlock.objects.filter(metric__run_id=run_id, metric__key__in=list(keys)).order_by(
        "metric", "number"
    )
    for key, data in blocks.values_list("metric__key", "data").iterator(200):
        folded[key].append(_read_block(data))
    return {key: _sorted_points(concatenate([*folded[key], *recent[key]]), MS) for key in keys}


def _load_points(run_id: str, key: str, *, ms: bool = True) -> Points:
    """Returns the points in the order of logging; with `ms=False` their times are zeros."""
    slices = (
        MetricSlice.objects.filter(usable(VERSION), run_id=run_id)
        .order_by("id")
        .values_list("data", flat=True)
    )
    recent = [points for data in slices for points in _read_slice(data, key).values()]
    blocks = (
        MetricBlock.objects.filter(metric__run_id=run_id, metric__key=key)
        .order_by("number")
        .values_list("data", flat=True)
    )
    # Blocks first: they are older than the slices, so the order is that of logging.
    return concatenate([*(_read_block(data, ms=ms) for data in blocks.iterator(200)), *recent])


def _read_slice(data: bytes | memoryview, key: str | None = None) -> dict[str, Points]:
    """Reads a slice; one that cannot be read is logged and left out."""
    try:
        return read_slice(bytes(data), key)
    except PointsError as error:
        log.error("Points of a metric are not shown: %s", error)
        return {}


def _read_block(data: bytes | memoryview, *, ms: bool = True) -> Points:
    try:
        return read_block(bytes(data), ms=ms)
    except PointsError as error:
        log.error("Points of a metric are not shown: %s", error)
        return NO_POINTS


def _column(points: Points, axis: str) -> IntArray:
    return points.step if axis == STEP else points.ms


def _is_rising(column: IntArray) -> bool:
    return bool((column[1:] > column[:-1]).all())


def _sorted_points(points: Points, axis: str) -> Points:
    """Sorts by this column and then the other one, and removes duplicates."""
    if _is_rising(_column(points, axis)):
        return points
    minor = points.ms if axis == STEP else points.step
    points = points[np.lexsort((minor, _column(points, axis)))]
    # Bits are compared: NaN is not equal to itself, but the same NaN may have been logged twice.
    columns = points.step, points.ms, points.value.view(np.int64)
    same = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    return points[np.concatenate(([True], ~same))] if same.any() else points


def _span(column: IntArray, start: float | None, end: float | None) -> slice:
    # One more point on each side, so that the line reaches the edges of the chart.
    first = 0 if start is None else int(np.searchsorted(column, start, "left")) - 1
    last = len(column) if end is None else int(np.searchsorted(column, end, "right")) + 1
    return slice(max(0, first), last)


def non_finite_marks(x: FloatArray, odd: FloatArray, pixels: int) -> tuple[FloatArray, FloatArray]:
    """Returns at most one NaN, one inf and one -inf for each pixel."""
    # At least 1 as the width: all points may have the same x.
    width = max(x[-1] - x[0], 1.0)
    places = ((x - x[0]) / width * (pixels - 1)).astype(np.int64)
    kinds = np.where(np.isnan(odd), 0, np.where(odd > 0, 1, 2))
    indices = np.sort(np.unique(3 * places + kinds, return_index=True)[1])
    return x[indices], odd[indices]
