from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection

from clusters import tasks
from clusters.models import Node, TelemetryChunk, TelemetrySlice
from clusters.telemetry import compaction, expiry, latest, series, slice_codec
from clusters.telemetry.chunks import chunk_bytes, empty_chunk, read_chunk, span_s
from tests.clusters.builders import ready_node
from tests.clusters.telemetry.builders import gpu_block, host_block, stored
from workspaces.set_aside import CORRUPT, sentences

pytestmark = pytest.mark.django_db
HOUR = 1_800_000_000 // 172800 * 172800
GPU = "GPU-a"
LATER = HOUR + 7200


@pytest.fixture
def node() -> Node:
    return ready_node("alpha", GPU)


def means(node: Node, start: int, end: int, points: int, now: float = LATER) -> list[float]:
    asked: dict[str, Any] = {
        "gpu_metrics": ["utilization_pct"],
        "host_metrics": [],
        "start": start,
        "end": end,
    }
    node_series = series.read_node(node, [GPU], points=points, now=now, **asked)
    return node_series.gpus[GPU]["utilization_pct"].mean.tolist() if GPU in node_series.gpus else []


def rows(step_s: int) -> list[int]:
    return sorted(TelemetryChunk.objects.filter(step_s=step_s, subject=GPU).values_list("start", flat=True))


class TestFold:
    def test_slices_become_chunks_of_every_step(self, node: Node) -> None:
        stored(node, gpu_block(HOUR, GPU, range(720)), host_block(HOUR, [5] * 720))
        assert compaction.fold(node.pk, LATER + 600) == 720
        assert not TelemetrySlice.objects.exists()
        assert (rows(10), rows(60), rows(600)) == ([HOUR, HOUR + 3600], [HOUR], [HOUR])
        minute = read_chunk(bytes(TelemetryChunk.objects.get(step_s=60, subject=GPU).data), HOUR)
        assert minute.mean[0, :3].tolist() == [2.5, 8.5, 14.5]
        assert minute.max[0, :3].tolist() == [6, 12, 18]
        assert minute.count[0, 119:121].tolist() == [6, 0]
        tens = read_chunk(bytes(TelemetryChunk.objects.get(step_s=600, subject=GPU).data), HOUR)
        assert (tens.mean[0, 0], tens.max[0, 11], tens.count[0, 0]) == (29.5, 720, 60)

    def test_the_same_bucket_again_changes_nothing(self, node: Node) -> None:
        told = gpu_block(HOUR, GPU, range(60))
        stored(node, told)
        compaction.fold(node.pk, LATER)
        before = {row.pk: bytes(row.data) for row in TelemetryChunk.objects.all()}
        stored(node, told)
        compaction.fold(node.pk, LATER)
        assert {row.pk: bytes(row.data) for row in TelemetryChunk.objects.all()} == before

    def test_bit_by_bit_comes_to_the_same_as_all_at_once(self, node: Node) -> None:
        other = ready_node("beta")
        numbers = [math.sin(place / 40) * 50 + 50 for place in range(400)]
        stored(other, gpu_block(HOUR, GPU, numbers))
        compaction.fold(other.pk, LATER)
        for first in range(0, 400, 7):
            stored(node, gpu_block(HOUR + first * 10, GPU, numbers[first : first + 7]))
            compaction.fold(node.pk, LATER)
        chunks = TelemetryChunk.objects.order_by("step_s", "start")
        one, two = ([bytes(row.data) for row in chunks.filter(node=at)] for at in (node, other))
        assert one == two

    def test_what_comes_late_finds_its_place_in_every_step(self, node: Node) -> None:
        stored(node, gpu_block(HOUR, GPU, [10] * 60), gpu_block(HOUR + 1200, GPU, [10] * 60))
        compaction.fold(node.pk, LATER)
        assert math.isnan(means(node, HOUR, HOUR + 1800, 3)[1])
        stored(node, gpu_block(HOUR + 600, GPU, [40] * 60))
        assert means(node, HOUR, HOUR + 1800, 3) == [10, 40, 10]
        compaction.fold(node.pk, LATER)
        assert means(node, HOUR, HOUR + 1800, 3) == [10, 40, 10]
        assert means(node, HOUR, HOUR + 1800, 3, now=HOUR + 20 * 86400) == [10, 40, 10]

    def test_a_metric_that_begins_later_takes_nothing_from_the_others(self, node: Node) -> None:
        stored(node, gpu_block(HOUR, GPU, [10] * 6))
        compaction.fold(node.pk, LATER)
        stored(node, gpu_block(HOUR + 60, GPU, [300] * 6, "power_w"))
        compaction.fold(node.pk, LATER)
        chunk = read_chunk(bytes(TelemetryChunk.objects.get(step_s=60).data), HOUR)
        assert chunk.metrics == ("utilization_pct", "power_w")
        assert chunk.count[:, :2].tolist() == [[6, 0], [0, 6]]

    def test_the_newest_buckets_stay_for_whoever_wants_the_latest(self, node: Node) -> None:
        stored(node, gpu_block(HOUR, GPU, range(60)))
        assert compaction.fold(node.pk, HOUR + 600) == 48
        assert latest.for_nodes([node], HOUR + 600)[node.pk].gpus == {GPU: {"utilization_pct": (59, 60)}}

    def test_what_cannot_be_read_is_left_out_and_holds_nothing_up(self, node: Node) -> None:
        TelemetrySlice.objects.create(node=node, start=HOUR, data=b"\x01broken")
        TelemetryChunk.objects.create(node=node, subject=GPU, step_s=60, start=HOUR, data=b"\x01broken")
        stored(node, gpu_block(HOUR + 10, GPU, [7]))
        compaction.fold(node.pk, LATER)
        assert list(TelemetrySlice.objects.values_list("data", "set_aside")) == [(b"\x01broken", CORRUPT)]
        assert means(node, HOUR, HOUR + 600, 1) == [7]

    def test_slices_of_a_newer_version_stay_and_are_folded_once_it_is_known(
        self, node: Node, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored(node, gpu_block(HOUR, GPU, [5, 6]))
        ours = {row.start: bytes(row.data) for row in TelemetrySlice.objects.all()}
        newer = b"\x02" + ours[HOUR][1:]
        TelemetrySlice.objects.filter(start=HOUR).update(data=newer)
        assert compaction.fold(node.pk, LATER) == 2
        assert compaction.fold(node.pk, LATER) == 0
        assert compaction.fold_due_nodes(LATER + 3600) == 0, "it is not looked at again and again"
        assert list(TelemetrySlice.objects.values_list("start", "data", "set_aside")) == [(HOUR, newer, 2)]
        lacking, known = means(node, HOUR, HOUR + 20, 2)
        assert (math.isnan(lacking), known) == (True, 6)
        assert (
            "1 slice of telemetry of format version 2, written by a newer TrainHub, is set aside."
            in sentences()
        )
        # As if this hub had been upgraded: it knows version 2, which differs by its number alone.
        for module in (slice_codec, compaction):
            monkeypatch.setattr(module, "SLICE_VERSION", 2)
        assert compaction.fold_due_nodes(LATER + 3600) == 1
        assert not TelemetrySlice.objects.exists()
        assert means(node, HOUR, HOUR + 20, 2) == [5, 6]

    def test_a_chunk_of_a_newer_version_is_not_replaced_and_its_numbers_wait(self, node: Node) -> None:
        newer = b"\x02 of a newer hub"
        TelemetryChunk.objects.create(
            node=node, subject=GPU, step_s=600, start=HOUR // span_s(600) * span_s(600), data=newer
        )
        stored(node, gpu_block(HOUR, GPU, [7]))
        compaction.fold(node.pk, LATER)
        assert [
            bytes(data) for data in TelemetryChunk.objects.filter(step_s=600).values_list("data", flat=True)
        ] == [newer]
        assert list(TelemetrySlice.objects.values_list("start", "set_aside")) == [(HOUR, 2)]
        assert (rows(10), len(rows(60))) == ([HOUR], 1)
        assert compaction.fold(node.pk, LATER) == 0

    def test_nothing_is_computed_while_the_shortest_step_is_of_a_newer_version(self, node: Node) -> None:
        newer = b"\x02 of a newer hub"
        TelemetryChunk.objects.create(node=node, subject=GPU, step_s=10, start=HOUR, data=newer)
        stored(node, gpu_block(HOUR, GPU, [7]))
        compaction.fold(node.pk, LATER)
        assert [bytes(row.data) for row in TelemetryChunk.objects.all()] == [newer]
        assert list(TelemetrySlice.objects.values_list("start", "set_aside")) == [(HOUR, 2)]


def refuse_deletes(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
    if sql.startswith("DELETE"):
        raise DatabaseError("the disk is full")
    return execute(sql, *rest)


class TestTick:
    def test_a_node_is_folded_once_it_has_enough_to_be_worth_it(self, node: Node) -> None:
        stored(node, gpu_block(HOUR, GPU, range(60)))
        assert compaction.fold_due_nodes(HOUR + 1190) == 0
        assert compaction.fold_due_nodes(HOUR + 1200 + compaction.SPREAD_S) == 1
        assert rows(10) == [HOUR]

    def test_a_node_that_cannot_be_folded_holds_up_no_other(
        self, node: Node, caplog: pytest.LogCaptureFixture
    ) -> None:
        beta = ready_node("beta")
        half = empty_chunk(HOUR, 10, 3, ["utilization_pct"])
        half.count[:] = 1
        TelemetryChunk.objects.create(node=node, subject=GPU, step_s=10, start=HOUR, data=chunk_bytes(half))
        for one in (node, beta):
            stored(one, gpu_block(HOUR, GPU, range(60)))
        assert compaction.fold_due_nodes(LATER) == 1
        assert set(TelemetrySlice.objects.values_list("node", flat=True)) == {node.pk}
        assert f"The telemetry of node {node.pk} could not be folded" in caplog.text

    def test_a_database_that_fails_ends_it_and_nothing_is_lost(self, node: Node) -> None:
        stored(node, gpu_block(HOUR, GPU, range(60)))
        with connection.execute_wrapper(refuse_deletes), pytest.raises(DatabaseError):
            compaction.fold_due_nodes(LATER)
        assert (TelemetrySlice.objects.count(), TelemetryChunk.objects.count()) == (60, 0)
        assert compaction.fold_due_nodes(LATER) == 1

    def test_what_it_has_no_time_for_is_left_to_the_next_one(
        self, node: Node, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored(node, gpu_block(HOUR, GPU, range(60)))
        with monkeypatch.context() as patched:
            patched.setattr(compaction, "TICK_BUDGET_S", -1.0)
            assert compaction.fold_due_nodes(LATER) == 0
        assert compaction.fold_due_nodes(LATER) == 1

    def test_none_begins_while_another_one_is_at_work(self, node: Node) -> None:
        stored(node, gpu_block(HOUR, GPU, range(60)))
        with compaction._tick_lock:
            assert compaction.fold_due_nodes(LATER) == 0
        assert compaction.fold_due_nodes(LATER) == 1

    def test_what_comes_from_the_future_waits(self, node: Node) -> None:
        stored(node, gpu_block(LATER, GPU, [1]))
        compaction.fold_due_nodes(HOUR + 3600)
        assert not rows(10)


class TestExpiry:
    def test_each_step_goes_when_its_days_are_over(self, node: Node, settings: Any) -> None:
        settings.TELEMETRY_KEEP_10S, settings.TELEMETRY_KEEP_60S, settings.TELEMETRY_KEEP_600S = 1, 2, 4
        stored(node, gpu_block(HOUR, GPU, [50] * 60))
        compaction.fold(node.pk, LATER)
        remaining = []
        for days in (1, 2, 3, 4, 5, 6):
            expiry.expire(HOUR + days * 86400 + 11000)
            remaining.append(sorted(TelemetryChunk.objects.values_list("step_s", flat=True)))
        assert remaining == [[60, 600], [600], [600], [600], [600], []]

    def test_what_is_older_than_the_shortest_step_is_kept_changes_no_longer_one(
        self, node: Node, settings: Any
    ) -> None:
        stored(node, gpu_block(HOUR, GPU, [50] * 60))
        compaction.fold(node.pk, LATER)
        now = HOUR + settings.TELEMETRY_KEEP_10S * 86400 + 10000
        expiry.expire(now)
        stored(node, gpu_block(HOUR, GPU, [1]))
        compaction.fold_due_nodes(now)
        assert expiry.expire(now) == 1
        assert not TelemetrySlice.objects.exists()
        assert means(node, HOUR, HOUR + 600, 1, now=now) == [50]

    def test_what_is_set_aside_waits_as_long_as_the_longest_step_is_kept(
        self, node: Node, settings: Any
    ) -> None:
        settings.TELEMETRY_KEEP_10S, settings.TELEMETRY_KEEP_60S, settings.TELEMETRY_KEEP_600S = 1, 2, 4
        TelemetrySlice.objects.create(node=node, start=HOUR, data=b"\x02", set_aside=2)
        remaining = []
        for days in (2, 3, 5):
            expiry.expire(HOUR + days * 86400)
            remaining.append(TelemetrySlice.objects.count())
        assert remaining == [1, 1, 0]

    def test_is_what_the_workers_task_does(self, node: Node) -> None:
        recent = int(time.time()) // 10 * 10
        for start in (recent, recent - 1000 * 86400):
            stored(node, gpu_block(start, GPU, [1]))
        tasks.expire_telemetry()
        assert list(TelemetrySlice.objects.values_list("start", flat=True)) == [recent]

    def test_more_than_one_batch_goes(self, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(expiry, "BATCH", 7)
        stored(node, gpu_block(HOUR, GPU, range(40)))
        assert expiry.expire(HOUR + 100 * 86400) == 40


def test_a_node_that_goes_takes_its_numbers_along(node: Node) -> None:
    stored(node, gpu_block(HOUR, GPU, range(60)))
    compaction.fold(node.pk, HOUR + 400)
    node.delete()
    assert not TelemetrySlice.objects.exists()
    assert not TelemetryChunk.objects.exists()
