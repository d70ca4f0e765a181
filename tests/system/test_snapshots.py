"""What a process measures, as it is stored, read again, subtracted and shown."""

from __future__ import annotations

import json
import math

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from workspaces.hub_metrics import snapshots
from workspaces.hub_metrics.snapshots import Snapshot


class Instruments:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.times = Histogram("times", "Times.", ("route",), buckets=(0.1, 1.0), registry=self.registry)
        self.total = Counter("failures", "Failures.", registry=self.registry)
        self.depth = Gauge("depth", "Depth.", ("queue",), registry=self.registry)

    def take(self) -> Snapshot:
        """As another process gets it."""
        return snapshots.snapshot_from_json(
            json.loads(json.dumps(snapshots.snapshot_to_json(snapshots.take_snapshot(self.registry))))
        )


def test_survives_the_database() -> None:
    measured = Instruments()
    for seconds in (0.05, 0.5, 5.0):
        measured.times.labels("/a").observe(seconds)
    measured.total.inc(2)
    measured.depth.labels("hub").set(7)
    times = measured.take()["times"]
    assert times.bounds == ("0.1", "1.0", "+Inf")
    assert times.series[("/a",)].buckets == [1, 2, 3]
    assert times.series[("/a",)].value == pytest.approx(5.55)
    assert measured.take()["failures"].series[()].value == 2
    assert measured.take()["depth"].series[("hub",)].value == 7


def test_an_increase_has_only_what_was_observed_since_and_gauges_as_they_are() -> None:
    measured = Instruments()
    measured.times.labels("/quiet").observe(0.05)
    measured.times.labels("/busy").observe(0.05)
    measured.depth.labels("hub").set(7)
    before = measured.take()
    measured.times.labels("/busy").observe(0.5)
    measured.times.labels("/new").observe(5.0)
    grown = snapshots.increase(measured.take(), before)
    assert {labels: one.buckets for labels, one in grown["times"].series.items()} == {
        ("/busy",): [0, 1, 1],
        ("/new",): [0, 0, 1],
    }
    assert not grown["failures"].series
    assert grown["depth"].series[("hub",)].value == 7


@pytest.mark.parametrize(
    ("buckets", "share", "expected"),
    [
        ([], 0.5, None),
        ([0, 0, 0], 0.5, None),
        ([5, 9, 10], 0.5, 0.1),
        ([5, 9, 10], 0.9, 1.0),
        ([0, 0, 1], 0.5, math.inf),
    ],
)
def test_a_quantile_is_the_bound_of_its_bucket(
    buckets: list[int], share: float, expected: float | None
) -> None:
    assert snapshots.quantile(("0.1", "1.0", "+Inf"), buckets, share) == expected


def test_prometheus_reads_the_metrics_of_all_processes() -> None:
    first, second = Instruments(), Instruments()
    first.times.labels("/a").observe(0.5)
    second.times.labels("/a").observe(5.0)
    second.total.inc()

    class Both(Collector):
        def collect(self):  # type: ignore[no-untyped-def]
            return snapshots.process_families({"web@one:1": first.take(), "web@two:2": second.take()})

    registry = CollectorRegistry()
    registry.register(Both())
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
    }
    assert samples[("times_bucket", "1.0", "web@one:1", "/a")] == 1
    assert samples[("times_bucket", "1.0", "web@two:2", "/a")] == 0
    assert samples[("times_count", "web@two:2", "/a")] == 1
    assert samples[("failures_total", "web@one:1")] == 0
    assert samples[("failures_total", "web@two:2")] == 1
