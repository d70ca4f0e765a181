"""Reading curves: all points, those of a span, or as many as a screen has pixels.

What is not folded yet is read from slices, first: what moves meanwhile is then seen twice, never not at all,
and of a point that is there twice only one is given."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tracking.metrics.downsampling import thinned
from tracking.metrics.points import (
    NONE,
    VERSION,
    Points,
    PointsError,
    Real,
    Whole,
    joined,
    read_block,
    read_slice,
)
from tracking.models import Metric, MetricBlock, MetricSlice
from workspaces.set_aside import usable

log = logging.getLogger(__name__)
STEP, MS = "step", "ms"


@dataclass(frozen=True)
class Curve:
    """What is drawn: `x` ascending and `y` finite, at most some four points for each pixel; `count`: how many
    points there are in the span. Values that cannot be drawn are marks: `odd_x`, and NaN, inf or -inf in
    `odd`."""

    x: Real
    y: Real
    count: int
    odd_x: Real
    odd: Real


def latest(run_ids: Collection[str]) -> dict[str, list[Metric]]:
    """Each run's curves by their keys: last, least and greatest value."""
    found: dict[str, list[Metric]] = {run_id: [] for run_id in run_ids}
    for metric in Metric.objects.filter(run_id__in=list(run_ids)).order_by("run_id", "key"):
        found[metric.run_id].append(metric)
    return found


def history(run_id: str, key: str) -> Points:
    """All points, by time, then step."""
    return _in_order(_points(run_id, key), MS)


def curve(
    run_id: str,
    key: str,
    *,
    pixels: int,
    axis: str = STEP,
    start: float | None = None,
    end: float | None = None,
) -> Curve:
    """The points whose `axis` (step, or ms: Unix milliseconds) is in the span, and the next ones beyond its
    ends."""
    points = _points(run_id, key, ms=axis == MS)
    if axis == STEP and not _is_rising(points.step):
        # Only times tell the order of points of one step, and which of them are there twice.
        points = _points(run_id, key)
    points = _in_order(points, axis)
    inside = _span(_column(points, axis), start, end)
    x, y = _column(points, axis)[inside].astype(np.float64), points.value[inside]
    finite = np.isfinite(y)
    if finite.all():
        return Curve(*thinned(x, y, pixels), len(y), NONE.value, NONE.value)
    return Curve(*thinned(x[finite], y[finite], pixels), len(y), *_marks(x[~finite], y[~finite], pixels))


def histories(run_id: str, keys: Collection[str]) -> dict[str, Points]:
    """All points of several curves, each by time, then step; what they share is read once."""
    fresh: dict[str, list[Points]] = {key: [] for key in keys}
    for data in (
        MetricSlice.objects.filter(usable(VERSION), run_id=run_id)
        .order_by("id")
        .values_list("data", flat=True)
    ):
        for key, points in _slice(data).items():
            if key in fresh:
                fresh[key].append(points)
    folded: dict[str, list[Points]] = {key: [] for key in keys}
    blocks = MetricBlock.objects.filter(metric__run_id=run_id, metric__key__in=list(keys)).order_by(
        "metric", "number"
    )
    for key, data in blocks.values_list("metric__key", "data").iterator(200):
        folded[key].append(_block(data))
    return {key: _in_order(joined([*folded[key], *fresh[key]]), MS) for key in keys}


def _points(run_id: str, key: str, *, ms: bool = True) -> Points:
    """In the order in which they came; times are zeros where they are not wanted."""
    slices = (
        MetricSlice.objects.filter(usable(VERSION), run_id=run_id)
        .order_by("id")
        .values_list("data", flat=True)
    )
    fresh = [points for data in slices for points in _slice(data, key).values()]
    blocks = (
        MetricBlock.objects.filter(metric__run_id=run_id, metric__key=key)
        .order_by("number")
        .values_list("data", flat=True)
    )
    return joined([*(_block(data, ms=ms) for data in blocks.iterator(200)), *fresh])


def _slice(data: bytes | memoryview, key: str | None = None) -> dict[str, Points]:
    """What cannot be read is told to the operator; the rest of the curve is drawn all the same."""
    try:
        return read_slice(bytes(data), key)
    except PointsError as error:
        log.error("Points of a metric are not shown: %s", error)
        return {}


def _block(data: bytes | memoryview, *, ms: bool = True) -> Points:
    try:
        return read_block(bytes(data), ms=ms)
    except PointsError as error:
        log.error("Points of a metric are not shown: %s", error)
        return NONE


def _column(points: Points, axis: str) -> Whole:
    return points.step if axis == STEP else points.ms


def _is_rising(column: Whole) -> bool:
    return bool((column[1:] > column[:-1]).all())


def _in_order(points: Points, axis: str) -> Points:
    """By this column, then the other one; of equal points one."""
    if _is_rising(_column(points, axis)):
        return points
    minor = points.ms if axis == STEP else points.step
    points = points[np.lexsort((minor, _column(points, axis)))]
    columns = points.step, points.ms, points.value.view(np.int64)
    same = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    return points[np.concatenate(([True], ~same))] if same.any() else points


def _span(column: Whole, start: float | None, end: float | None) -> slice:
    first = 0 if start is None else int(np.searchsorted(column, start, "left")) - 1
    last = len(column) if end is None else int(np.searchsorted(column, end, "right")) + 1
    return slice(max(0, first), last)


def _marks(x: Real, odd: Real, pixels: int) -> tuple[Real, Real]:
    """At most one mark of a kind for each pixel."""
    width = max(x[-1] - x[0], 1.0)
    places = ((x - x[0]) / width * (pixels - 1)).astype(np.int64)
    kinds = np.where(np.isnan(odd), 0, np.where(odd > 0, 1, 2))
    chosen = np.sort(np.unique(3 * places + kinds, return_index=True)[1])
    return x[chosen], odd[chosen]
