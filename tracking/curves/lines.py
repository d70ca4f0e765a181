"""Curves for charts: a line for each run and metric, on the requested axis."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.models import Run
from tracking.curves import metric_axis
from tracking.curves.curve_query import Axis, SeriesQuery
from tracking.curves.smoothing import moving_average
from tracking.metrics import curve_reader
from tracking.metrics.curve_reader import DrawnCurve
from tracking.metrics.points import FloatArray, Points
from tracking.models import Metric

# Limit of the lines in one response.
MAX_LINES = 1000


@dataclass(frozen=True)
class CurveLine:
    """`smooth` has a value for each `y` of the curve if smoothing was requested. `origin` is the zero of a
    relative axis in Unix milliseconds."""

    run: Run
    metric: Metric
    curve: DrawnCurve
    smooth: FloatArray | None
    axis: Axis
    origin: int

    def to_json(self) -> dict[str, object]:
        """Returns the line as JSON; `marks` has the position of each NaN and infinity, which JSON cannot
        represent."""
        odd = zip(self._display_values(self.curve.odd_x).tolist(), self.curve.odd.tolist(), strict=True)
        marks = [[x, number_or_word(value)] for x, value in odd]
        record = {
            "run": self.run.pk,
            "number": self.run.number,
            **metric_json(self.metric),
            "points": self.curve.count,
            "is_sampled": self.curve.count > len(self.curve.x) + len(marks),
            "x": self._display_values(self.curve.x),
            "y": self.curve.y,
            "marks": marks,
        }
        return record if self.smooth is None else record | {"smooth": self.smooth}

    def _display_values(self, x: FloatArray) -> np.ndarray:
        if self.axis is Axis.METRIC:
            return x
        return x.astype(np.int64) if self.axis is Axis.STEP else (x - self.origin) / 1000


def curve_lines(runs: Sequence[Run], query: SeriesQuery, *, origin: Run | None = None) -> list[CurveLine]:
    """Returns the lines, metric by metric. A relative axis starts with the run `origin`, or else with each
    run itself."""
    rows = metrics_by_run_and_key(runs, query.keys)
    if query.axis is Axis.METRIC:
        return _lines_over_metric(runs, rows, query)
    origins = {run.pk: start_ms(origin or run) if query.axis is Axis.RELATIVE else 0 for run in runs}
    return [
        _line(run, rows[run.pk, key], query, origins[run.pk])
        for key in query.keys
        for run in runs
        if (run.pk, key) in rows
    ]


def metrics_by_run_and_key(runs: Iterable[Run], keys: Collection[str]) -> dict[tuple[str, str], Metric]:
    metrics = Metric.objects.filter(run__in=[run.pk for run in runs], key__in=keys)
    return {(metric.run_id, metric.key): metric for metric in metrics}


def start_ms(run: Run) -> int:
    """Returns the start of the run in Unix milliseconds."""
    return int((run.started_at or run.created_at).timestamp() * 1000)


def storage_span(query: SeriesQuery, origin: int) -> tuple[float | None, float | None]:
    """Returns the query's span in storage units: steps or Unix milliseconds."""
    if query.axis in (Axis.STEP, Axis.METRIC):
        return query.start, query.end
    start, end = (None if at is None else at * 1000 + origin for at in (query.start, query.end))
    return start, end


def finite_points(points: Points, axis: Axis) -> tuple[FloatArray, FloatArray]:
    """Returns the finite values in the order of the axis, as (x, y); x is in storage units."""
    finite = np.isfinite(points.value)
    finite_part = points if finite.all() else points[finite]
    if axis is Axis.STEP:
        # Points are sorted by time already, so a stable sort keeps that order within a step.
        order = np.argsort(finite_part.step, kind="stable")
        return finite_part.step[order].astype(np.float64), finite_part.value[order]
    return finite_part.ms.astype(np.float64), finite_part.value


def metric_json(metric: Metric) -> dict[str, object]:
    """Returns the statistics of the whole curve. A row's null `last_value` means NaN."""
    last = math.nan if metric.last_value is None else metric.last_value
    return {
        "key": metric.key,
        "count": metric.count,
        "last": number_or_word(last),
        "min": _number_or_null(metric.min_value),
        "max": _number_or_null(metric.max_value),
        "last_step": metric.last_step,
        "last_time": metric.last_ms / 1000,
    }


def number_or_word(value: float) -> float | str:
    """Returns the number, or the word for one that JSON cannot represent."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _number_or_null(value: float | None) -> float | str | None:
    return None if value is None else number_or_word(value)


def _line(run: Run, metric: Metric, query: SeriesQuery, origin: int) -> CurveLine:
    start, end = storage_span(query, origin)
    axis = curve_reader.STEP if query.axis is Axis.STEP else curve_reader.MS
    curve = curve_reader.curve(run.pk, metric.key, pixels=query.pixels, axis=axis, start=start, end=end)
    smooth = _smooth(run, metric, query, curve) if query.smoothing else None
    return CurveLine(run, metric, curve, smooth, query.axis, origin)


def _lines_over_metric(
    runs: Sequence[Run], rows: dict[tuple[str, str], Metric], query: SeriesQuery
) -> list[CurveLine]:
    """Returns the lines over the metric `query.x_key`, metric by metric; none for runs without it."""
    lines: dict[tuple[str, str], CurveLine] = {}
    for run in runs:
        keys = [key for key in query.keys if (run.pk, key) in rows]
        # The metric on the axis is read once for all curves of the run.
        points = curve_reader.histories(run.pk, {*keys, query.x_key}) if keys else {}
        for key in keys:
            x, y = metric_axis.join(points[query.x_key], points[key])
            if len(x):
                curve, smooth = metric_axis.draw(x, y, query)
                lines[run.pk, key] = CurveLine(run, rows[run.pk, key], curve, smooth, query.axis, 0)
    return [lines[run.pk, key] for key in query.keys for run in runs if (run.pk, key) in lines]


def _smooth(run: Run, metric: Metric, query: SeriesQuery, curve: DrawnCurve) -> FloatArray:
    """Returns the moving average at the drawn points; it starts at the start of the curve, so that it does
    not depend on the span."""
    x, y = finite_points(curve_reader.curve_history(run.pk, metric.key), query.axis)
    if not len(x):
        return np.empty(0)
    # A drawn point shows the average up to and including the last point at its x.
    places = np.searchsorted(x, curve.x, "right") - 1
    return moving_average(y, query.smoothing)[np.maximum(places, 0)]
