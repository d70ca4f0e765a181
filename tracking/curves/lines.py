"""Curves as they are drawn: a line per run and metric, on the axis that is asked for."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.models import Run
from tracking.curves.curve_query import Asked, Axis
from tracking.curves.smoothing import smoothed
from tracking.metrics import curve_reader
from tracking.metrics.curve_reader import Curve
from tracking.metrics.points import Points, Real
from tracking.models import Metric

MOST_LINES = 1000
"""In one answer."""


@dataclass(frozen=True)
class Line:
    """`smooth` beside each of the curve's `y`, where it was asked for. `origin`: 0 of a relative axis, in
    Unix milliseconds."""

    run: Run
    metric: Metric
    curve: Curve
    smooth: Real | None
    axis: Axis
    origin: int

    def to_json(self) -> dict[str, Any]:
        """NaN and infinities are no JSON: marks say which, and where."""
        odd = zip(self._shown(self.curve.odd_x).tolist(), self.curve.odd.tolist(), strict=True)
        marks = [[x, word(value)] for x, value in odd]
        told = {
            "run": self.run.pk,
            "number": self.run.number,
            **metric_json(self.metric),
            "points": self.curve.count,
            "is_sampled": self.curve.count > len(self.curve.x) + len(marks),
            "x": self._shown(self.curve.x),
            "y": self.curve.y,
            "marks": marks,
        }
        return told if self.smooth is None else told | {"smooth": self.smooth}

    def _shown(self, x: Real) -> np.ndarray:
        return x.astype(np.int64) if self.axis is Axis.STEP else (x - self.origin) / 1000


def lines(runs: Sequence[Run], asked: Asked, *, origin: Run | None = None) -> list[Line]:
    """Of every run and metric there is, metric by metric. `origin`: whose beginning is 0 of a relative axis;
    else its own."""
    rows = metrics_of(runs, asked.keys)
    begun = {run.pk: began_ms(origin or run) if asked.axis is Axis.RELATIVE else 0 for run in runs}
    return [
        _line(run, rows[run.pk, key], asked, begun[run.pk])
        for key in asked.keys
        for run in runs
        if (run.pk, key) in rows
    ]


def metrics_of(runs: Iterable[Run], keys: Collection[str]) -> dict[tuple[str, str], Metric]:
    found = Metric.objects.filter(run__in=[run.pk for run in runs], key__in=keys)
    return {(metric.run_id, metric.key): metric for metric in found}


def began_ms(run: Run) -> int:
    """Unix milliseconds at which the run's own clock begins."""
    return int((run.started_at or run.created_at).timestamp() * 1000)


def span_of(asked: Asked, origin: int) -> tuple[float | None, float | None]:
    """`from` and `to` as storage knows them: steps, or Unix milliseconds."""
    if asked.axis is Axis.STEP:
        return asked.start, asked.end
    start, end = (None if at is None else at * 1000 + origin for at in (asked.start, asked.end))
    return start, end


def ordered(points: Points, axis: Axis) -> tuple[Real, Real]:
    """The finite values in the order of the axis, as (x, y); x as storage knows it."""
    finite = np.isfinite(points.value)
    kept = points if finite.all() else points[finite]
    if axis is Axis.STEP:
        # Already by time, so that equal steps stay in the order in which they came.
        order = np.argsort(kept.step, kind="stable")
        return kept.step[order].astype(np.float64), kept.value[order]
    return kept.ms.astype(np.float64), kept.value


def metric_json(metric: Metric) -> dict[str, Any]:
    """Of the whole curve. A NaN at its end is kept as null in the row, so that null there stands for it."""
    last = math.nan if metric.last_value is None else metric.last_value
    return {
        "key": metric.key,
        "count": metric.count,
        "last": word(last),
        "min": _known(metric.min_value),
        "max": _known(metric.max_value),
        "last_step": metric.last_step,
        "last_time": metric.last_ms / 1000,
    }


def word(value: float) -> float | str:
    """The number, or the word for one that JSON has not."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _known(value: float | None) -> float | str | None:
    return None if value is None else word(value)


def _line(run: Run, metric: Metric, asked: Asked, origin: int) -> Line:
    start, end = span_of(asked, origin)
    axis = curve_reader.STEP if asked.axis is Axis.STEP else curve_reader.MS
    curve = curve_reader.curve(run.pk, metric.key, pixels=asked.pixels, axis=axis, start=start, end=end)
    smooth = _smooth(run, metric, asked, curve) if asked.smoothing else None
    return Line(run, metric, curve, smooth, asked.axis, origin)


def _smooth(run: Run, metric: Metric, asked: Asked, curve: Curve) -> Real:
    """At the places that are drawn; from the curve's very beginning on, so that it does not depend on the
    span."""
    x, y = ordered(curve_reader.history(run.pk, metric.key), asked.axis)
    if not len(x):
        return np.empty(0)
    places = np.searchsorted(x, curve.x, "right") - 1
    return smoothed(y, asked.smoothing)[np.maximum(places, 0)]
