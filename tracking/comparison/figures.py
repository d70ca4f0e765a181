"""Metrics of several runs for comparison, with the best value marked."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.models import Run
from tracking.metrics import curve_reader
from tracking.models import Metric

MAX_KEYS = 1000
STATISTICS = ("last", "min", "max")
# Parts of metric names that usually mean that lower values are better; HIGHER has those for higher values.
LOWER = re.compile(
    r"loss|err|perplexity|\bppl\b|mse|mae|rmse|divergence|\bkl\b|wer\b|cer\b|fid\b|latency|duration|seconds",
    re.IGNORECASE,
)
HIGHER = re.compile(
    r"acc|f1|auc|auroc|precision|recall|reward|score|bleu|rouge|\bmap\b|iou|dice|r2\b|throughput"
    r"|per_sec|samples_s|\bmfu\b|correct",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class MetricFigure:
    """One statistic of one run. `mark` is best, or lowest and highest if the better direction is unknown;
    else empty."""

    value: float | None
    mark: str = ""


@dataclass(frozen=True)
class FigureRow:
    """One metric: `last`, `min` and `max` contain a figure for each run."""

    key: str
    last: tuple[MetricFigure, ...]
    min: tuple[MetricFigure, ...]
    max: tuple[MetricFigure, ...]

    @property
    def cells(self) -> list[tuple[MetricFigure, MetricFigure, MetricFigure]]:
        return list(zip(self.last, self.min, self.max, strict=True))


def metric_figures(runs: Sequence[Run]) -> tuple[FigureRow, ...]:
    latest = curve_reader.metrics_by_run([run.pk for run in runs])
    by_run = {run_id: {metric.key: metric for metric in metrics} for run_id, metrics in latest.items()}
    keys = sorted({key for metrics in by_run.values() for key in metrics}, key=str.casefold)[:MAX_KEYS]
    return tuple(_row(key, [by_run[run.pk].get(key) for run in runs]) for key in keys)


def direction(key: str) -> str:
    """Returns `lower` or `higher`, whichever is better according to the metric's name; else ""."""
    # The group before the last slash does not describe the value.
    name = key.rsplit("/", 1)[-1]
    if key.startswith("system/"):
        return ""
    if HIGHER.search(name):
        return "higher"
    return "lower" if LOWER.search(name) else ""


def _row(key: str, metrics: Sequence[Metric | None]) -> FigureRow:
    better = direction(key)
    last = [
        # A null last value of a stored metric means NaN.
        None if metric is None else math.nan if metric.last_value is None else metric.last_value
        for metric in metrics
    ]
    minima = [None if metric is None else metric.min_value for metric in metrics]
    maxima = [None if metric is None else metric.max_value for metric in metrics]
    return FigureRow(key, _mark_best(last, better), _mark_best(minima, better), _mark_best(maxima, better))


def _mark_best(values: Sequence[float | None], better: str) -> tuple[MetricFigure, ...]:
    """Marks the best value; none if all values are equal."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if len(finite) < 2 or min(finite) == max(finite):
        return tuple(MetricFigure(value) for value in values)
    low, high = min(finite), max(finite)
    words = {"lower": {low: "best"}, "higher": {high: "best"}}.get(better, {low: "lowest", high: "highest"})
    return tuple(MetricFigure(value, words.get(value, "") if value is not None else "") for value in values)
