"""What reports carry of measurements and events, and what is left of it after the hub's answer."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable

import pytest

from tests.node.hub import FakeHub
from trainhub_launch.machine import Heartbeat
from trainhub_launch.report import Ack, Report
from trainhub_launch.telemetry import GpuEvent
from trainhub_node.gpu.gpu_events import GpuEventLog
from trainhub_node.telemetry.buckets import Recorder
from trainhub_node.telemetry.telemetry_queue import MAX_BUCKETS, MAX_EVENTS, TelemetryQueue

BEAT = Heartbeat(
    agent_version="1",
    hostname="a",
    address="10.0.0.1",
    interface="eth0",
    cores=1,
    slots=1,
    memory_bytes=1,
    memory_used_bytes=1,
    cpu_pct=1.0,
    disk_free_bytes=1,
)
START = 1_800_000_000


class Node:
    """A feed whose seconds pass when they are told to, and a hub that answers its reports, without a road
    between them."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.book = GpuEventLog()
        self.feed = TelemetryQueue(self.recorder, self.book.all, self.book.confirm)
        self.hub = FakeHub()
        self._seconds = itertools.count()

    def pass_seconds(self, seconds: int) -> None:
        for second in itertools.islice(self._seconds, seconds):
            self.recorder.add(START + second + 0.5, second, {"cpu_pct": 1.0}, {"GPU-a": {"power_w": 100.0}})

    def report(self, *, beats: bool = True) -> Report:
        """One that the feed has filled; the hub has answered it or refused it."""
        bare = Report(agent="agent", sequence=1, sent_at=0.0, heartbeat=BEAT if beats else None)
        sent = self.feed.fill(bare)
        if self.hub.refuses(sent):
            self.feed.on_rejected()
        else:
            self.feed.on_accepted(self.hub.take(sent))
        return sent

    def lost(self) -> Report:
        """One that never gets there."""
        return self.feed.fill(Report(agent="agent", sequence=1, sent_at=0.0, heartbeat=BEAT))


@pytest.fixture
def node() -> Node:
    return Node()


def moments(report: Report) -> int:
    return sum(block.steps for block in report.buckets if block.is_host)


def seconds(report: Report) -> int:
    return sum(block.steps for block in report.samples if block.is_host)


class TestSamples:
    def test_stay_here_while_nobody_looks(self, node: Node) -> None:
        node.pass_seconds(30)

        assert node.report().samples == ()
        assert not node.feed.is_due

    def test_begin_with_the_last_minute_when_somebody_looks(self, node: Node) -> None:
        node.pass_seconds(100)
        node.hub.is_watched = True
        node.report()

        assert node.feed.is_due
        assert seconds(node.report()) == 60

    def test_go_on_with_what_is_new(self, node: Node) -> None:
        node.hub.is_watched = True
        node.report()
        node.pass_seconds(5)
        node.report()
        node.pass_seconds(2)

        assert [seconds(node.report()), seconds(node.report())] == [2, 0]

    def test_that_got_lost_are_not_sent_again(self, node: Node) -> None:
        node.hub.is_watched = True
        node.report()
        node.pass_seconds(5)
        node.lost()
        node.pass_seconds(1)

        assert seconds(node.report()) == 1

    def test_end_when_nobody_looks_any_more_and_begin_anew(self, node: Node) -> None:
        node.hub.is_watched = True
        node.report()
        node.pass_seconds(20)
        node.hub.is_watched = False
        node.report()
        node.pass_seconds(5)
        assert node.report().samples == ()
        node.hub.is_watched = True
        node.report()

        assert seconds(node.report()) == 25


class TestBuckets:
    def test_ride_with_a_sign_of_life_and_hasten_nothing(self, node: Node) -> None:
        node.pass_seconds(11)

        assert not node.feed.is_due
        assert moments(node.report(beats=False)) == 0
        assert moments(node.report()) == 1

    def test_are_sent_until_they_are_confirmed(self, node: Node) -> None:
        node.pass_seconds(21)
        node.hub.confirms = False
        assert [moments(node.report()), moments(node.lost()), moments(node.report())] == [2, 2, 2]
        node.hub.confirms = True
        node.report()

        assert moments(node.report()) == 0

    def test_of_an_hours_silence_arrive_over_several_reports(self, node: Node) -> None:
        node.pass_seconds(3601)

        sent = [moments(node.report()) for _ in range(7)]

        assert sent == [MAX_BUCKETS] * 6 + [0]
        assert [block.start for block in node.hub.buckets if block.is_host] == [
            START + 600 * part for part in range(6)
        ]


class TestEvents:
    def test_are_news_until_a_report_with_them_is_answered(self, node: Node) -> None:
        node.book.add("xid", "GPU-a", code=79)
        assert node.feed.is_due

        node.lost()
        assert node.feed.is_due
        node.report(beats=False)

        assert not node.feed.is_due
        assert [event.code for event in node.hub.events] == [79]

    def test_are_sent_again_until_they_are_confirmed(self, node: Node) -> None:
        node.book.add("xid", "GPU-a", code=79)
        node.hub.confirms = False
        node.report()
        node.hub.confirms = True
        node.report()
        node.report()

        assert [event.serial for event in node.hub.events] == [1, 1]
        assert not node.feed.is_due

    def test_go_in_parts_where_they_are_many(self, node: Node) -> None:
        for _ in range(MAX_EVENTS + 1):
            node.book.add("lost", "GPU-a")

        assert [len(node.report().events), len(node.report().events), len(node.report().events)] == [
            MAX_EVENTS,
            1,
            0,
        ]

    def test_that_were_not_sent_are_not_confirmed(self, node: Node) -> None:
        node.book.add("lost", "GPU-a")
        sent = node.feed.fill(Report(agent="agent", sequence=1, sent_at=0.0))
        node.book.add("back", "GPU-a")

        node.feed.on_accepted(Ack(events_until=99))

        assert ([event.kind for event in sent.events], [event.kind for event in node.book.all()]) == (
            ["lost"],
            ["back"],
        )


class TestAHubThatRefuses:
    def test_gets_no_samples_for_a_while(self, node: Node) -> None:
        node.hub.is_watched = True
        node.report()
        node.hub.refuses = lambda report: bool(report.samples)
        node.pass_seconds(11)

        node.report()
        node.pass_seconds(1)

        assert moments(node.report()) == 1
        assert len(node.hub.buckets) == 2

    def test_for_their_number_gets_fewer_buckets_and_in_the_end_all(self, node: Node) -> None:
        node.hub.refuses = lambda report: moments(report) > 10
        node.pass_seconds(1001)

        while node.recorder.buckets(1, 1):
            node.report()

        assert sum(block.steps for block in node.hub.buckets if block.is_host) == 100

    @pytest.mark.parametrize("beats", [True, False], ids=["alone", "beside reports of logs that pass"])
    def test_one_bucket_gets_all_others(
        self, node: Node, caplog: pytest.LogCaptureFixture, *, beats: bool
    ) -> None:
        caplog.set_level(logging.WARNING)
        bad = START + 30
        node.hub.refuses = lambda report: any(block.start <= bad < block.end for block in report.buckets)
        node.pass_seconds(201)

        for _ in range(100):
            node.report()
            node.report(beats=beats)

        arrived = sorted(
            start
            for block in node.hub.buckets
            if block.is_host
            for start in range(block.start, block.end, 10)
        )
        assert arrived == [start for start in range(START, START + 200, 10) if start != bad]
        assert "The hub rejects the measurements from" in caplog.text

    def test_one_event_gets_those_after_it(self, node: Node) -> None:
        for code in (1, 2, 3):
            node.book.add("xid", "GPU-a", code=code)
        node.hub.refuses = refusing_event(2)

        for _ in range(40):
            node.report()

        assert 3 in [event.code for event in node.hub.events]
        assert node.book.all() == ()


def refusing_event(code: int) -> Callable[[Report], bool]:
    def refuses(report: Report) -> bool:
        return any(
            event == GpuEvent(event.serial, event.at, "xid", "GPU-a", code, event.detail)
            for event in report.events
        )

    return refuses
