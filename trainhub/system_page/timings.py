"""How long the hub's own work took, from the measurements of its processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workspaces.hub_metrics.processes import MeasuredProcess
from workspaces.hub_metrics.snapshots import Labels, MetricSeries, Series, quantile


@dataclass(frozen=True)
class Timing:
    """How long something took within the window. `median_s`, `p99_s`: upper bounds, in seconds; None: not
    observed; infinite: more than a minute."""

    name: str
    count: int
    total_s: float
    median_s: float | None
    p99_s: float | None


@dataclass(frozen=True)
class RequestTiming(Timing):
    """`name`: of the hub's requests method and route, of the object store's the kind. `failed`: answers of
    500 and above, or requests to the store that failed for good."""

    failed: int


def timings_of(name: str, living: Sequence[MeasuredProcess]) -> list[Timing]:
    """Returns the timings of a histogram with one label, over all processes."""
    metric, merged = merged_series(name, living)
    return [Timing(*timing_columns(labels[0], metric, series)) for labels, series in sorted(merged.items())]


def value_of(process: MeasuredProcess, name: str, labels: Labels = ()) -> float | None:
    """Returns the value of one series of a process."""
    metric = process.recent.get(name)
    series = metric.series.get(labels) if metric else None
    return series.value if series else None


def value_sum(name: str, living: Sequence[MeasuredProcess], labels: Labels = ()) -> float:
    return sum(value_of(process, name, labels) or 0.0 for process in living)


def merged_series(
    name: str, living: Sequence[MeasuredProcess]
) -> tuple[MetricSeries | None, dict[Labels, Series]]:
    """Returns the series of a metric, over all processes, by their labels."""
    metrics = [metric for process in living if (metric := process.recent.get(name)) and metric.series]
    merged: dict[Labels, list[Series]] = {}
    for metric in metrics:
        for labels, series in metric.series.items():
            merged.setdefault(labels, []).append(series)
    return (metrics[0] if metrics else None), {labels: series_sum(parts) for labels, parts in merged.items()}


def series_sum(parts: Iterable[Series]) -> Series:
    parts = list(parts)
    buckets = [sum(column) for column in zip(*(part.buckets for part in parts), strict=True)]
    return Series(sum(part.value for part in parts), buckets)


def timing_columns(
    name: str, metric: MetricSeries | None, series: Series
) -> tuple[str, int, float, float | None, float | None]:
    """Returns the fields of a Timing."""
    bounds = metric.bounds if metric else ()
    return (
        name,
        series.count,
        series.value,
        quantile(bounds, series.buckets, 0.5),
        quantile(bounds, series.buckets, 0.99),
    )
