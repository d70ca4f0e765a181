"""All measurements of a process at one moment, as values that JSON can hold."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

Labels = tuple[str, ...]


@dataclass
class Series:
    """The values of a metric under certain labels. `value`: of a histogram the sum of what was observed.
    `buckets`: of a histogram the observations up to each upper bound, the last of which is infinite;
    cumulative."""

    value: float = 0.0
    buckets: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.buckets[-1] if self.buckets else 0


@dataclass(frozen=True)
class MetricSeries:
    """A metric with all its series. `bounds`: the upper bounds of a histogram's buckets, as Prometheus writes
    them."""

    name: str
    kind: str
    help: str
    labels: Labels
    bounds: tuple[str, ...]
    series: dict[Labels, Series]


Snapshot = dict[str, MetricSeries]


def take_snapshot(registry: CollectorRegistry) -> Snapshot:
    """Returns what the instruments of `registry` measure now. Series without an observation are left out."""
    return {metric.name: _measured(metric) for metric in registry.collect()}


def _measured(metric: Metric) -> MetricSeries:
    series: dict[Labels, Series] = {}
    names: Labels = ()
    bounds: list[str] = []
    for sample in metric.samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        names = names or tuple(labels)
        one = series.setdefault(tuple(labels.values()), Series())
        if sample.name.endswith("_bucket"):
            one.buckets.append(int(sample.value))
            if sample.labels["le"] not in bounds:
                bounds.append(sample.labels["le"])
        elif not sample.name.endswith("_count"):
            one.value = sample.value
    is_histogram = metric.type == "histogram"
    filled = {labels: one for labels, one in series.items() if one.count or not is_histogram}
    return MetricSeries(metric.name, metric.type, metric.documentation, names, tuple(bounds), filled)


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    return {
        name: {
            "kind": one.kind,
            "help": one.help,
            "labels": one.labels,
            "bounds": one.bounds,
            "series": [[labels, series.value, series.buckets] for labels, series in one.series.items()],
        }
        for name, one in snapshot.items()
    }


def snapshot_from_json(stored: Mapping[str, Any]) -> Snapshot:
    return {
        name: MetricSeries(
            name,
            one["kind"],
            one["help"],
            tuple(one["labels"]),
            tuple(one["bounds"]),
            {tuple(labels): Series(value, buckets) for labels, value, buckets in one["series"]},
        )
        for name, one in stored.items()
    }


def increase(later: Snapshot, earlier: Snapshot) -> Snapshot:
    """Returns what was observed between two snapshots of one process; gauges have their later value."""
    return {
        name: MetricSeries(
            one.name,
            one.kind,
            one.help,
            one.labels,
            one.bounds,
            dict(_increases(one, earlier[name].series if name in earlier else {})),
        )
        for name, one in later.items()
    }


def _increases(one: MetricSeries, before: Mapping[Labels, Series]) -> Iterator[tuple[Labels, Series]]:
    for labels, series in one.series.items():
        past = before.get(labels)
        if past is None or one.kind == "gauge":
            yield labels, series
            continue
        buckets = [now - then for now, then in zip(series.buckets, past.buckets, strict=True)]
        grown = Series(series.value - past.value, buckets)
        if grown.value or grown.count:
            yield labels, grown


def quantile(bounds: Iterable[str], buckets: list[int], share: float) -> float | None:
    """Returns an upper bound of the value below which `share` (0 to 1) of the observations lie, in the unit
    of the histogram: that of its bucket. None: nothing was observed. Infinite: longer than all bounds."""
    if not buckets or not buckets[-1]:
        return None
    uppers = [float(bound) for bound in bounds]
    return uppers[bisect_left(buckets, share * buckets[-1])]


def process_families(processes: Mapping[str, Snapshot]) -> Iterator[Metric]:
    """Yields the metrics of several processes for Prometheus. `processes`: by the value of the label
    `process`."""
    by_name: dict[str, Metric] = {}
    for process, snapshot in processes.items():
        for one in snapshot.values():
            family = by_name.setdefault(one.name, _family(one))
            for labels, series in one.series.items():
                _add(family, (process, *labels), series, one.bounds)
    yield from by_name.values()


def _family(one: MetricSeries) -> Metric:
    kinds = {"histogram": HistogramMetricFamily, "counter": CounterMetricFamily, "gauge": GaugeMetricFamily}
    family: Metric = kinds[one.kind](one.name, one.help, labels=("process", *one.labels))
    return family


def _add(family: Metric, labels: Labels, series: Series, bounds: tuple[str, ...]) -> None:
    if isinstance(family, HistogramMetricFamily):
        pairs = list(zip(bounds, (float(count) for count in series.buckets), strict=True))
        family.add_metric(labels, pairs, series.value)
    elif isinstance(family, CounterMetricFamily | GaugeMetricFamily):
        family.add_metric(labels, series.value)
