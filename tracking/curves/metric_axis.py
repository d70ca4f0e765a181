"""Curves over another metric, such as a loss over the epoch: the points of both are joined by step."""

from __future__ import annotations

import numpy as np

from tracking.curves.curve_query import SeriesQuery
from tracking.curves.smoothing import moving_average
from tracking.metrics.curve_reader import DrawnCurve, non_finite_marks
from tracking.metrics.downsampling import sample_indices
from tracking.metrics.points import NO_POINTS, FloatArray, Points


def join(x_points: Points, y_points: Points) -> tuple[FloatArray, FloatArray]:
    """Returns the values of both metrics in the order of the steps of `y_points`.

    Between two steps of `x_points` its value is interpolated. Points of `y_points` before its first step or
    after its last one are left out, because their x is unknown."""
    steps, values = _last_of_each_step(x_points[np.isfinite(x_points.value)])
    if not len(steps):
        return NO_POINTS.value, NO_POINTS.value
    # Points are sorted by time already, so a stable sort keeps that order within a step.
    order = np.argsort(y_points.step, kind="stable")
    step, value = y_points.step[order], y_points.value[order]
    inside = (step >= steps[0]) & (step <= steps[-1])
    return np.interp(step[inside], steps, values), value[inside]


def draw(x: FloatArray, y: FloatArray, query: SeriesQuery) -> tuple[DrawnCurve, FloatArray | None]:
    """Returns the points within the query's span as they are drawn, and their moving average if the query
    wants one. The points stay in the order of their steps, so `x` may go back and forth."""
    finite = np.isfinite(y)
    average = moving_average(y[finite], query.smoothing) if query.smoothing else None
    inside = _in_span(x, query)
    odd = np.flatnonzero(inside & ~finite)
    odd = odd[np.argsort(x[odd], kind="stable")]
    marks = non_finite_marks(x[odd], y[odd], query.pixels) if len(odd) else (NO_POINTS.value, NO_POINTS.value)
    drawn_x, drawn_y = x[inside & finite], y[inside & finite]
    # Columns of pixels exist only where x rises; elsewhere as many points are kept by their order.
    is_rising = bool((np.diff(drawn_x) >= 0).all())
    places = drawn_x if is_rising else np.arange(len(drawn_x), dtype=np.float64)
    sample = sample_indices(places, drawn_y, query.pixels)
    curve = DrawnCurve(drawn_x[sample], drawn_y[sample], int(inside.sum()), *marks)
    return curve, None if average is None else average[inside[finite]][sample]


def _last_of_each_step(points: Points) -> tuple[FloatArray, FloatArray]:
    """Returns the distinct steps in ascending order, each with the value that was logged last."""
    order = np.argsort(points.step, kind="stable")
    step, value = points.step[order], points.value[order]
    is_last = np.append(step[1:] != step[:-1], True) if len(step) else np.zeros(0, dtype=bool)
    return step[is_last].astype(np.float64), value[is_last]


def _in_span(x: FloatArray, query: SeriesQuery) -> np.ndarray:
    """Returns which points lie in the span, with their neighbours, so that lines reach the chart's edges."""
    inside = np.ones(len(x), dtype=bool)
    if query.start is not None:
        inside &= x >= query.start
    if query.end is not None:
        inside &= x <= query.end
    wider = inside.copy()
    wider[1:] |= inside[:-1]
    wider[:-1] |= inside[1:]
    return wider
