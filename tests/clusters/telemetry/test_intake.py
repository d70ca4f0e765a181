from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from clusters.models import Gpu, Node, NodeEvent, TelemetrySlice
from clusters.telemetry import intake, slice_writer
from clusters.telemetry.slice_codec import slice_parts
from tests.clusters.builders import ready_node
from tests.clusters.telemetry.builders import gpu_block, host_block
from trainhub_launch.report import Report
from trainhub_launch.telemetry import Block, GpuEvent
from workspaces import background_loop, process_caches

pytestmark = pytest.mark.django_db
START = 1_800_000_000
NOW = datetime.fromtimestamp(START + 60, UTC)


@pytest.fixture(autouse=True)
def _fresh_process() -> Iterator[None]:
    process_caches.clear_all()
    yield
    process_caches.clear_all()


@pytest.fixture
def node() -> Node:
    return ready_node("alpha", "GPU-a", "GPU-b", at=NOW)


def report_with(*buckets: Block, events: tuple[GpuEvent, ...] = (), agent: str = "agent") -> Report:
    return Report(agent, 1, NOW.timestamp(), buckets=buckets, events=events)


def take(node: Node, *buckets: Block, now: datetime = NOW) -> int:
    return intake.ingest_telemetry(node, report_with(*buckets), now)[0]


def stored() -> dict[int, dict[str, list[float]]]:
    """Start -> subject -> means."""
    values_by_start: dict[int, dict[str, list[float]]] = {}
    for row in TelemetrySlice.objects.order_by("start"):
        parts = slice_parts(bytes(row.data))
        values_by_start[row.start] = {
            name: mean.tolist() for part in parts for name, mean in zip(part.subjects, part.mean, strict=True)
        }
    return values_by_start


class TestBuckets:
    def test_are_stored_and_confirmed_up_to_the_end_of_the_last(self, node: Node) -> None:
        assert take(node, host_block(START, [1, 2]), gpu_block(START, "GPU-a", [10, 20])) == START + 20
        assert stored() == {START: {"": [1.0], "GPU-a": [10.0]}, START + 10: {"": [2.0], "GPU-a": [20.0]}}

    def test_the_same_report_again_changes_nothing_and_is_confirmed_again(self, node: Node) -> None:
        assert [take(node, host_block(START, [1])), take(node, host_block(START, [99]))] == [
            START + 10,
            START + 10,
        ]
        assert stored() == {START: {"": [1.0]}}

    def test_reports_that_overtake_one_another_are_both_taken(self, node: Node) -> None:
        take(node, host_block(START + 20, [3]))
        assert take(node, host_block(START, [1, 2])) == START + 20
        assert list(stored()) == [START, START + 10, START + 20]

    def test_of_a_node_whose_clock_is_an_hour_off_are_stored_by_the_hubs(self, node: Node) -> None:
        node.clock_offset_s = -3600.4
        assert take(node, host_block(START + 3600, [1])) == START + 3610
        assert list(stored()) == [START]

    def test_from_the_future_are_dropped_and_do_not_come_again(self, node: Node) -> None:
        assert take(node, host_block(START + 600, [1])) == START + 610
        assert stored() == {}

    def test_older_than_such_are_kept_are_dropped_and_do_not_come_again(self, node: Node) -> None:
        old = START - 30 * 86400
        assert take(node, host_block(old, [1]), host_block(START, [2])) == START + 10
        assert list(stored()) == [START]

    def test_what_is_not_known_stays_unknown(self, node: Node) -> None:
        take(node, gpu_block(START, "GPU-a", [math.nan]))
        assert math.isnan(stored()[START]["GPU-a"][0])

    def test_none_is_none(self, node: Node) -> None:
        assert take(node) == 0


class TestOwnership:
    def test_the_gpu_of_another_living_node_is_left_out(self, node: Node) -> None:
        thief = ready_node("beta", "GPU-a", "GPU-c", at=NOW)
        block = Block(START, 10, ("GPU-a", "GPU-c"), ("power_w",), b"\0\0\x80?\0\0\0@", b"\0\0\x80?\0\0\0@")
        assert take(thief, block) == START + 10
        assert stored() == {START: {"GPU-c": [2.0]}}

    def test_a_gpu_that_nobody_knows_is_left_out_and_confirmed(self, node: Node) -> None:
        assert take(node, gpu_block(START, "GPU-x", [1, 2])) == START + 20
        assert stored() == {}

    def test_a_gpu_that_fell_off_the_bus_may_still_be_told_of(self, node: Node) -> None:
        Gpu.objects.filter(pk="GPU-a").update(present=False)
        take(node, gpu_block(START, "GPU-a", [1]))
        assert stored() == {START: {"GPU-a": [1.0]}}


class TestWaiting:
    @pytest.fixture(autouse=True)
    def _going(self, node: Node) -> Iterator[None]:
        with background_loop.going():
            yield

    def test_nothing_is_confirmed_before_it_is_stored(self, node: Node) -> None:
        assert [take(node, host_block(START, [1])), take(node, host_block(START, [1]))] == [0, 0]
        slice_writer.write()
        assert take(node, host_block(START, [1])) == START + 10

    def test_only_what_lies_before_the_first_that_waits_is_confirmed(self, node: Node) -> None:
        take(node, host_block(START, [1]))
        slice_writer.write()
        assert take(node, host_block(START, [1, 2])) == START + 10

    def test_a_second_costs_one_statement_for_all_nodes(self, node: Node) -> None:
        beta = ready_node("beta", at=NOW)
        for one in (node, beta):
            take(one, host_block(START, [1, 2, 3]))
        slice_writer.write()
        assert TelemetrySlice.objects.count() == 6

    def test_while_too_much_waits_nothing_more_is_taken(
        self, node: Node, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(slice_writer, "MAX_WAITING_BYTES", 200)
        for second in range(0, 100, 10):
            take(node, host_block(START + second - 40, [1]))
        slice_writer.write()
        assert 0 < TelemetrySlice.objects.count() < 5
        assert take(node, host_block(START, [1])) == 0
        slice_writer.write()
        assert take(node, host_block(START, [1])) == START + 10

    def test_a_bucket_that_waits_already_is_not_replaced(self, node: Node) -> None:
        for data in (b"first", b"second"):
            slice_writer.put(node.pk, {START: data})
        slice_writer.write()
        assert [bytes(row.data) for row in TelemetrySlice.objects.all()] == [b"first"]

    def test_only_the_latest_that_were_stored_are_remembered(
        self, node: Node, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(slice_writer, "MAX_REMEMBERED", 2)
        take(node, host_block(START, [1, 2, 3]))
        slice_writer.write()
        assert list(slice_writer.stored_starts(node.pk)) == [START + 10, START + 20]
        take(node, host_block(START, [9]))
        slice_writer.write()
        assert stored()[START] == {"": [1.0]}


@pytest.mark.django_db(transaction=True)
def test_a_node_that_was_removed_keeps_back_nothing_of_the_others() -> None:
    removed, stays = ready_node("gone", at=NOW), ready_node("stays", at=NOW)
    with background_loop.going():
        for one in (removed, stays):
            take(one, host_block(START, [1]))
        Node.objects.filter(pk=removed.pk).delete()
        slice_writer.write()
        assert take(stays, host_block(START, [1])) == START + 10
    assert list(TelemetrySlice.objects.values_list("node", flat=True)) == [stays.pk]


class TestEvents:
    def xid(self, serial: int, code: int = 79, gpu: str = "GPU-b", at: float = START) -> GpuEvent:
        return GpuEvent(serial, at, "xid", gpu, code)

    def test_become_lines_of_the_journal_with_a_sentence(self, node: Node) -> None:
        assert intake.ingest_telemetry(node, report_with(events=(self.xid(1), self.xid(2, 48))), NOW) == (
            0,
            2,
        )
        first, second = NodeEvent.objects.filter(kind="xid")
        assert (first.gpu, first.code, second.code) == ("GPU-b", 79, 48)
        assert first.message.startswith("GPU 1 reported XID 79: the GPU has fallen off the bus.")
        assert first.at == datetime.fromtimestamp(START, UTC)

    def test_that_come_again_are_kept_once(self, node: Node) -> None:
        for _ in range(3):
            assert intake.ingest_telemetry(node, report_with(events=(self.xid(1),)), NOW)[1] == 1
        assert NodeEvent.objects.filter(kind="xid").count() == 1

    def test_of_another_agent_count_from_one_again(self, node: Node) -> None:
        for agent in ("first", "second"):
            intake.ingest_telemetry(node, report_with(events=(self.xid(1),), agent=agent), NOW)
        assert NodeEvent.objects.filter(kind="xid").count() == 2

    def test_a_gpu_that_is_lost_and_one_that_is_back(self, node: Node) -> None:
        lost = GpuEvent(1, START, "lost", "GPU-a", detail="GPU is lost.")
        intake.ingest_telemetry(
            node, report_with(events=(lost, GpuEvent(2, START + 5, "back", "GPU-a"))), NOW
        )
        events = NodeEvent.objects.filter(gpu="GPU-a").values_list("kind", "message")
        assert dict(events) == {
            "gpu_lost": "GPU 0 is lost, and runs on it fail. GPU is lost.",
            "gpu_back": "GPU 0 responds again.",
        }

    @pytest.mark.parametrize(
        ("detail", "message"),
        [("2 errors in its memory.", "GPU 0: 2 errors in its memory."), ("", "GPU 0: memory errors.")],
    )
    def test_memory_errors_are_those_of_their_gpu(self, node: Node, detail: str, message: str) -> None:
        event = GpuEvent(1, START, "ecc", "GPU-a", detail=detail)
        intake.ingest_telemetry(node, report_with(events=(event,)), NOW)
        assert NodeEvent.objects.values_list("kind", "message").get(gpu="GPU-a") == ("ecc", message)

    def test_times_that_no_clock_shows_are_now(self, node: Node) -> None:
        events = (self.xid(1, at=math.nan), self.xid(2, at=1e300), self.xid(3, at=START + 3600))
        intake.ingest_telemetry(node, report_with(events=events), NOW)
        assert set(NodeEvent.objects.filter(kind="xid").values_list("at", flat=True)) == {NOW}

    def test_an_unknown_code_says_where_to_look(self, node: Node) -> None:
        intake.ingest_telemetry(node, report_with(events=(self.xid(1, 9999),)), NOW)
        assert "XID 9999" in NodeEvent.objects.get(kind="xid").message

    def test_of_another_nodes_gpu_are_not_believed(self, node: Node) -> None:
        liar = ready_node("beta", at=NOW + timedelta(seconds=1))
        assert intake.ingest_telemetry(liar, report_with(events=(self.xid(1),)), NOW)[1] == 1
        assert not NodeEvent.objects.filter(kind="xid").exists()
