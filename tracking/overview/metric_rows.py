"""The metrics of a run with their final and best values and a small curve each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jobs.models import Run
from jobs.views.sparklines import svg_paths
from tracking.comparison.figures import direction
from tracking.metrics import curve_reader
from tracking.metrics.downsampling import downsample
from tracking.metrics.points import Points
from tracking.models import Metric

MAX_ROWS = 12
# Curves are drawn only while reading all their points is cheap.
MAX_POINTS = 200_000
PIXELS = 60


@dataclass(frozen=True)
class MetricRow:
    """`best` is None if the name does not say which direction is better; then `low` and `high` say what there
    was. `paths`: SVG paths of the curve over its steps."""

    key: str
    last: float | None
    best: float | None
    low: float | None
    high: float | None
    paths: tuple[str, ...]


def metric_rows(run: Run) -> tuple[list[MetricRow], int]:
    """Returns the first MAX_ROWS metrics of the run by name, and the number of all."""
    metrics = curve_reader.metrics_by_run([run.pk]).get(run.pk, [])
    visible = metrics[:MAX_ROWS]
    cheap = (
        [metric.key for metric in visible] if sum(metric.count for metric in visible) <= MAX_POINTS else []
    )
    points = curve_reader.histories(run.pk, cheap) if cheap else {}
    return [_row(metric, points.get(metric.key)) for metric in visible], len(metrics)


def _row(metric: Metric, points: Points | None) -> MetricRow:
    better = direction(metric.key)
    return MetricRow(
        metric.key,
        metric.last_value,
        {"lower": metric.min_value, "higher": metric.max_value}.get(better),
        metric.min_value,
        metric.max_value,
        () if points is None else _paths(points),
    )


def _paths(points: Points) -> tuple[str, ...]:
    finite = np.isfinite(points.value)
    if finite.sum() < 2:
        return ()
    order = np.argsort(points.step[finite], kind="stable")
    x, y = points.step[finite][order].astype(np.float64), points.value[finite][order]
    _, drawn = downsample(x, y, PIXELS)
    low, high = float(drawn.min()), float(drawn.max())
    # A curve that does not change is a line in the middle.
    return tuple(svg_paths(drawn, low, high) if high > low else svg_paths(drawn, low - 1, high + 1))
