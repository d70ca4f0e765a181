from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from clusters.enrolment.node_tokens import enrol_node, revoke_node
from clusters.journal import kind_word, recent_events, record_event
from clusters.models import Hearing, Node
from clusters.node_reports import heartbeat, silence
from clusters.node_reports.hub_uptime import listening_window
from tests.clusters.builders import GIB, beat, ready_node

pytestmark = pytest.mark.django_db
# Later than any process that runs this test could have started.
NOW = datetime(2099, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def listening(seconds: float) -> None:
    """The hub listens from long before NOW until so many seconds after."""
    Hearing.objects.update_or_create(pk=1, defaults={"since": after(-1000), "until": after(seconds)})


def report(
    node: Node, seconds: float, *, agent: str = "first", clock_moved_s: float = 0.0, **changed: Any
) -> None:
    heartbeat.apply(
        node,
        beat(**{"boot_id": "boot-1", **changed}),
        after(seconds),
        agent=agent,
        clock_moved_s=clock_moved_s,
    )


def joined() -> Node:
    listening(10_000)
    node, _ = enrol_node("local", "alpha")
    report(node, 0)
    return node


def kinds(node: Node) -> list[str]:
    return [event.kind for event in reversed(recent_events(node))]


def latest(node: Node) -> str:
    return recent_events(node)[0].message


class TestTold:
    def test_the_first_report_is_told(self) -> None:
        assert latest(joined()) == "Reported for the first time: box.lan at 10.0.0.7."

    def test_a_report_like_the_last_tells_nothing(self) -> None:
        node = joined()
        report(node, 2)
        assert kinds(node) == ["heard"]

    def test_silence_is_told_by_whoever_comes_back(self) -> None:
        node = joined()
        report(node, 35)
        assert latest(node) == "Reports again, after 35 s of silence."

    def test_a_hub_that_was_away_itself_missed_nobody(self) -> None:
        node = joined()
        Hearing.objects.update(since=after(599), until=after(605))
        report(node, 605)
        assert kinds(node) == ["heard"]

    def test_a_restart_of_the_machine_and_of_its_agent(self) -> None:
        node = joined()
        report(node, 2, agent="second")
        assert latest(node) == "Its agent was restarted."
        report(node, 4, agent="third", boot_id="boot-2")
        assert kinds(node) == ["heard", "agent", "restarted"]
        assert Node.objects.get().boot_id == "boot-2"

    def test_another_name_of_the_machine(self) -> None:
        node = joined()
        report(node, 2, hostname="new.lan")
        assert latest(node) == "The host name is now new.lan; it was box.lan."

    def test_a_clock_that_is_off_and_that_is_set_right(self) -> None:
        node = joined()
        for seconds, offset, moved in ((2, 40.0, 40.0), (4, 1.0, -39.0), (6, 0.0, -1.0)):
            node.clock_offset_s = offset
            report(node, seconds, clock_moved_s=moved)
        assert kinds(node) == ["heard", "clock", "clock"]
        assert [event.message.split(".")[0] for event in recent_events(node)[:2]] == [
            "Its clock agrees with the hub's again",
            "Its clock is 40 s behind the hub's",
        ]
        assert Node.objects.get().clock_offset_s == 0.0

    def test_a_disk_that_fills_is_told_once_until_there_is_room_again(self) -> None:
        node = joined()
        for seconds, free in enumerate((1.5, 1.4, 2.5, 1.9, 4, 1.0)):
            report(node, 2 + 400 * seconds, disk_free_bytes=int(free * GIB))
            Hearing.objects.update(since=after(400 * seconds))
        assert [
            event.message.split(" where")[0] for event in recent_events(node) if event.kind == "disk"
        ] == [
            "Only 1.0 GiB are free",
            "Only 1.5 GiB are free",
        ]


class TestDriver:
    def test_another_driver_is_told_and_the_first_one_is_not(self) -> None:
        node = joined()
        for seconds, driver in ((2, "550.54"), (4, "550.54"), (6, "560.10")):
            report(node, seconds, driver=driver)
        assert kinds(node) == ["heard", "driver"]
        assert latest(node) == "The NVIDIA driver is now 560.10; it was 550.54."

    def test_gpus_that_cannot_be_read_and_that_can_be_again(self) -> None:
        node = joined()
        for seconds, trouble in ((2, "Driver and library differ; restart the machine."), (4, "")):
            report(node, seconds, nvml=trouble)
        assert [event.message for event in reversed(recent_events(node, 2))] == [
            "Its GPUs cannot be read: Driver and library differ; restart the machine.",
            "Its GPUs can be read again.",
        ]


class TestNote:
    def test_the_same_again_within_minutes_is_told_once(self) -> None:
        node = joined()
        for seconds in (0, 60, 599, 700):
            record_event(node, "agent", "Its agent was restarted.", after(seconds))
        assert kinds(node) == ["heard", "agent", "agent"]

    def test_two_agents_under_one_name_do_not_fill_the_journal(self) -> None:
        node = joined()
        for seconds in range(100):
            report(node, seconds, agent=f"agent-{seconds % 2}", hostname=f"box-{seconds % 2}")
        assert len(recent_events(node, 100)) == 5

    def test_only_the_latest_are_shown(self) -> None:
        node = joined()
        for number in range(30):
            record_event(node, "agent", f"{number}", NOW)
        assert [event.message for event in recent_events(node, 2)] == ["29", "28"]


class TestSilence:
    def test_is_told_once_and_so_is_the_loss(self) -> None:
        node = joined()
        for seconds in (5, 11, 13, 59, 61, 63, 1000):
            silence.record_silent_nodes(after(seconds), listening_window(after(seconds)))
        assert kinds(node) == ["heard", "silent", "lost"]
        assert latest(node) == "No report for 61 s; its runs end or are retried on other nodes."

    def test_is_told_again_after_a_return(self) -> None:
        node = joined()
        for seconds in (11, 700):
            silence.record_silent_nodes(after(seconds), listening_window(after(seconds)))
            report(node, seconds + 5)
        assert kinds(node) == ["heard", "silent", "back", "lost", "back"]

    def test_of_a_node_that_was_revoked_is_nobodys_business(self) -> None:
        node = joined()
        revoke_node(node)
        silence.record_silent_nodes(after(100), listening_window(after(100)))
        assert not {"silent", "lost"} & set(kinds(node))

    def test_looking_at_nodes_that_report_is_one_query(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        listening(10_000)
        for name in ("alpha", "beta"):
            ready_node(name, at=NOW)
        span = listening_window(after(5))
        with django_assert_num_queries(1):
            silence.record_silent_nodes(after(5), span)


@pytest.mark.parametrize(
    ("kind", "word"), [("gpu_back", "GPU back"), ("heard", "first report"), ("drained", "drained")]
)
def test_pages_name_a_kind_in_words(kind: str, word: str) -> None:
    assert kind_word(kind) == word
