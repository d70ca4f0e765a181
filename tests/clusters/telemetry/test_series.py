from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from django.db import connection

from clusters.models import Node, TelemetryChunk, TelemetrySlice
from clusters.telemetry import compaction, heat, latest, series
from clusters.telemetry.bins import grid
from tests.clusters.builders import ready_node
from tests.clusters.telemetry.builders import block, gpu_block, host_block, stored

DAY = 86400
START = 1_800_000_000 // DAY * DAY
GPU = "GPU-a"
METRICS: dict[str, Any] = {"gpu_metrics": ["utilization_pct", "power_w"], "host_metrics": ["cpu_pct"]}


class TestStep:
    @pytest.mark.parametrize(
        ("span_s", "points", "age_days", "step"),
        [
            (3600, 300, 0, 10),
            (3600, 60, 0, 60),
            (DAY, 300, 0, 60),
            (DAY, 2000, 0, 10),
            (30 * DAY, 300, 0, 600),
            (600, 2000, 0, 10),
            (3600, 300, 5, 60),
            (3600, 300, 100, 600),
            (3600, 300, 4000, 600),
            (30 * DAY, 2000, 100, 600),
        ],
    )
    def test_follows_from_span_points_and_age(
        self, span_s: int, points: int, age_days: int, step: int
    ) -> None:
        end = START - age_days * DAY
        assert series.step_for(end - span_s, end, points, START) == step

    @pytest.mark.parametrize("points", [1, 2, 3, 59, 300, 1999])
    @pytest.mark.parametrize("start", [START, START + 7, START + 3599.5])
    def test_a_grid_covers_the_span_with_no_more_points_than_wanted(self, points: int, start: float) -> None:
        on = grid(start, start + 5000, points, 10)
        assert on.points <= points
        assert on.step_s % 10 == 0
        assert on.start <= start
        assert on.end >= start + 5000
        assert on.start % on.step_s == 0


@pytest.mark.django_db
class TestRead:
    def test_means_are_weighed_by_the_buckets_they_stand_for(self) -> None:
        node = ready_node("alpha", GPU)
        stored(node, gpu_block(START, GPU, [10.0] * 54), gpu_block(START + 600, GPU, [40.0] * 6))
        compaction.fold(node.pk, START + 3600)
        node_series = series.read_node(
            node, None, start=START, end=START + 1200, points=1, now=START + 20 * DAY, **METRICS
        )
        assert node_series.gpus[GPU]["utilization_pct"].mean.tolist() == [13]
        assert node_series.gpus[GPU]["utilization_pct"].max.tolist() == [41]

    def test_what_is_folded_and_what_is_not_make_one_curve(self) -> None:
        node = ready_node("alpha", GPU)
        numbers = list(range(360))
        stored(node, gpu_block(START, GPU, numbers), host_block(START, numbers))
        compaction.fold(node.pk, START + 1800)
        assert TelemetrySlice.objects.exists()
        assert TelemetryChunk.objects.exists()
        for points in (360, 60, 30):
            each = 360 // points
            node_series = series.read_node(
                node, None, start=START, end=START + 3600, points=points, now=START + 3600, **METRICS
            )
            means = [sum(numbers[first : first + each]) / each for first in range(0, 360, each)]
            assert node_series.gpus[GPU]["utilization_pct"].mean.tolist() == means
            assert node_series.host["cpu_pct"].mean.tolist() == means
            assert node_series.host["cpu_pct"].max.tolist() == [
                numbers[first + each - 1] + 1 for first in range(0, 360, each)
            ]

    def test_a_chunk_that_cannot_be_read_leaves_a_gap(self, caplog: pytest.LogCaptureFixture) -> None:
        node = ready_node("alpha", GPU)
        stored(node, gpu_block(START, GPU, [10.0] * 720))
        compaction.fold(node.pk, START + 8000)
        TelemetryChunk.objects.filter(step_s=10, start=START).update(data=b"\x01broken")
        node_series = series.read_node(
            node, None, start=START, end=START + 7200, points=720, now=START + 7200, **METRICS
        )
        mean = node_series.gpus[GPU]["utilization_pct"].mean
        assert np.isnan(mean[:360]).all()
        assert mean[360:].tolist() == [10] * 360
        assert f"The chunk from {START} on with a step of 10 s cannot be read" in caplog.text

    def test_a_node_of_whose_slices_none_can_be_read_has_no_curves(self) -> None:
        node = ready_node("alpha", GPU)
        TelemetrySlice.objects.create(node=node, start=START, data=b"\x01broken")
        node_series = series.read_node(
            node, None, start=START, end=START + 60, points=6, now=START + 60, **METRICS
        )
        assert (node_series.gpus, node_series.host) == ({}, {})

    def test_another_nodes_numbers_are_not_its_own(self) -> None:
        node, other = ready_node("alpha", GPU), ready_node("beta", "GPU-b")
        stored(other, gpu_block(START, "GPU-b", [1, 2]), host_block(START, [3, 4]))
        node_series = series.read_node(
            node, None, start=START, end=START + 60, points=6, now=START + 60, **METRICS
        )
        assert (node_series.gpus, node_series.host) == ({}, {})


@pytest.mark.django_db
class TestHeat:
    def fleet(self) -> list[Node]:
        nodes = [ready_node(f"box-{number}", f"GPU-{number}") for number in range(3)]
        for number, node in enumerate(nodes):
            told = {
                f"GPU-{number}": {
                    "utilization_pct": (10.0 * number, 50),
                    "fan_pct": (3, 3),
                    "power_w": (200, 300),
                }
            }
            stored(node, block(START, [told] * 360))
        compaction.fold(nodes[0].pk, START + 7200)
        return nodes

    def heat_of(self, nodes: list[Node], metric: str, points: int = 6) -> dict[str, list[float]]:
        node_series = heat.read_heat(
            nodes, metric, start=START, end=START + 3600, points=points, now=START + 3600
        )
        return {uuid: mean.tolist() for (_, uuid), mean in node_series.rows.items()}

    def test_one_metric_of_every_gpu_folded_or_not(self) -> None:
        nodes = self.fleet()
        assert self.heat_of(nodes, "utilization_pct") == {
            f"GPU-{number}": [10.0 * number] * 6 for number in range(3)
        }
        assert self.heat_of(nodes[:2], "fan_pct") == {"GPU-0": [3] * 6, "GPU-1": [3] * 6}
        assert self.heat_of(nodes, "sm_active_pct") == {}

    def test_of_a_large_fleet_some_buckets_stand_for_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        nodes = self.fleet()
        monkeypatch.setattr(heat, "MAX_SLICES", 100)
        assert self.heat_of(nodes, "utilization_pct") == {
            f"GPU-{number}": [10.0 * number] * 6 for number in range(3)
        }
        # And no gap between them looks like one in the numbers.
        assert self.heat_of(nodes, "utilization_pct", 360) == {
            f"GPU-{number}": [10.0 * number] * 30 for number in range(3)
        }

    @pytest.mark.parametrize("data", [b"\x01broken", b"\x01" + b"\xff" * 100_000])
    def test_a_chunk_that_cannot_be_read_takes_nothing_from_other_gpus(
        self, data: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        nodes = self.fleet()
        compaction.fold(nodes[1].pk, START + 7200)
        TelemetryChunk.objects.filter(node=nodes[1]).update(data=data)
        assert self.heat_of(nodes[:2], "fan_pct") == {"GPU-0": [3] * 6}
        assert "The chunk of 'GPU-1' from" in caplog.text

    def test_a_metric_that_lies_far_into_its_chunk_is_found_too(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        nodes = self.fleet()
        monkeypatch.setattr(heat, "likely_bytes_needed", lambda _metric: 90)
        assert self.heat_of(nodes[:1], "fan_pct") == {"GPU-0": [3] * 6}


@pytest.mark.django_db
class TestLatest:
    def test_is_the_newest_bucket_of_each_node_by_subject(self) -> None:
        one, two = ready_node("alpha", GPU), ready_node("beta")
        stored(
            one,
            block(START, [{GPU: {"power_w": (100, 120)}}, {GPU: {"power_w": (200, 220)}}]),
            host_block(START + 10, [7]),
        )
        node_series = latest.for_nodes([one, two], START + 25)
        assert list(node_series) == [one.pk]
        assert (node_series[one.pk].start, node_series[one.pk].gpus, node_series[one.pk].host) == (
            START + 10,
            {GPU: {"power_w": (200, 220)}},
            {"cpu_pct": (7, 8)},
        )

    def test_a_slice_that_cannot_be_read_is_logged_and_hides_no_other_node(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        one, two = ready_node("alpha", GPU), ready_node("beta")
        TelemetrySlice.objects.create(node=one, start=START, data=b"\x01broken")
        stored(two, host_block(START, [7]))
        assert list(latest.for_nodes([one, two], START + 10)) == [two.pk]
        assert f"The slice of node {one.pk} at {START} cannot be read" in caplog.text

    def test_of_very_many_nodes_is_read_in_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(latest, "BATCH", 2)
        nodes = [ready_node(f"box-{number}") for number in range(4)]
        for number, node in enumerate(nodes):
            stored(node, host_block(START, [number]))
        newest = latest.for_nodes(nodes[:3], START + 10)
        assert [bucket.host["cpu_pct"][0] for bucket in newest.values()] == [0, 1, 2]

    def test_what_is_old_is_not_the_latest(self) -> None:
        node = ready_node("alpha", GPU)
        stored(node, gpu_block(START, GPU, [1]))
        assert latest.for_nodes([node], START + 70)
        assert not latest.for_nodes([node], START + 71)

    def test_unknown_numbers_are_absent(self) -> None:
        node = ready_node("alpha", GPU, "GPU-b")
        stored(node, block(START, [{GPU: {"power_w": (1, 1)}, "GPU-b": {"fan_pct": (2, 2)}}]))
        assert latest.for_nodes([node], START + 10)[node.pk].gpus == {
            GPU: {"power_w": (1, 1)},
            "GPU-b": {"fan_pct": (2, 2)},
        }


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_fold_the_same_node_lose_nothing() -> None:
    node = ready_node("alpha", GPU)
    stored(node, gpu_block(START, GPU, range(300)))
    together = threading.Barrier(3)

    def folded() -> int:
        together.wait()
        try:
            return compaction.fold(node.pk, START + 7200)
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        counts = [task.result() for task in [pool.submit(folded) for _ in range(3)]]
    assert sum(counts) == 300
    node_series = series.read_node(
        node, None, start=START, end=START + 3000, points=300, now=START + 3600, **METRICS
    )
    assert node_series.gpus[GPU]["utilization_pct"].mean.tolist() == list(range(300))
