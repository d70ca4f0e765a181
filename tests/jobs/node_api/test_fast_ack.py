"""Reports that bring only numbers: answered from memory while rounds are going, and right all the same."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from clusters import journal
from clusters.enrolment.node_tokens import enrol_node, revoke_node
from clusters.models import Gpu, Hearing, Node
from clusters.node_reports import gpu_sync, heartbeat_writer, hub_uptime
from jobs.node_api import fast_ack, reports
from jobs.node_api.node_session import sessions
from tests.jobs.builders import Played, alive, beat, ended, node, running
from trainhub_launch.machine import Heartbeat
from trainhub_launch.report import Ack, AttemptFact, LogChunk, Report
from trainhub_launch.states import Phase
from trainhub_launch.telemetry import GpuEvent
from workspaces import background_loop
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
SOON = timedelta(seconds=2)


@pytest.fixture(autouse=True)
def _going() -> Iterator[None]:
    with background_loop.going():
        yield


def broken(*_: object) -> None:
    raise RuntimeError("the database is gone")


def look() -> None:
    """Does now what the background loop does once a second."""
    heartbeat_writer.write()
    sessions.refresh()
    hub_uptime.refresh()
    gpu_sync.refresh()


@pytest.fixture
def alpha(monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(gpu_sync, "REFRESH_INTERVAL_S", 0.0)
    made = node(gpus=2)
    look()
    return made


def numbers(beat_: Heartbeat | None = None, *, at: datetime | None = None, **more: object) -> Report:
    sent = (at or timezone.now()).timestamp()
    told = Report("", 1, sent, heartbeat=beat_ or beat(gpus=2))
    return replace(told, **more)  # type: ignore[arg-type]


def answer(node_: Node, told: Report, after: timedelta = SOON) -> Ack | None:
    return fast_ack.try_fast_ack(sessions.for_node(node_), told, timezone.now() + after)


class TestNumbers:
    def test_cost_no_query(self, alpha: Node, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        with django_assert_num_queries(0):
            ack = answer(alpha, numbers())
        assert ack is not None
        assert (ack.interval_s, ack.stop, ack.is_watched) == (5.0, (), False)

    def test_are_in_the_rows_after_the_next_round(self, alpha: Node) -> None:
        answer(alpha, numbers(replace(beat(gpus=2), cpu_pct=77.0)))
        heartbeat_writer.write()
        row = Node.objects.get()
        assert row.vitals["cpu_pct"] == 77.0
        assert row.last_report_at is not None
        assert row.last_report_at == alpha.last_report_at
        assert row.last_report_at > timezone.now()

    def test_that_are_older_do_not_turn_the_row_back(self, alpha: Node) -> None:
        answer(alpha, numbers())
        latest = timezone.now() + timedelta(seconds=60)
        Node.objects.update(last_report_at=latest)
        heartbeat_writer.write()
        assert Node.objects.get().last_report_at == latest

    def test_are_written_later_if_a_transaction_fails(
        self, alpha: Node, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer(alpha, numbers(replace(beat(gpus=2), cpu_pct=77.0)))
        with monkeypatch.context() as patched:
            patched.setattr(journal, "record_events", broken)
            with pytest.raises(RuntimeError):
                heartbeat_writer.write()
        assert Node.objects.get().vitals["cpu_pct"] != 77.0
        heartbeat_writer.write()
        assert Node.objects.get().vitals["cpu_pct"] == 77.0

    def test_of_many_nodes_are_written_in_turn(self, alpha: Node, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(heartbeat_writer, "MAX_VITALS", 1)
        beta = node("beta")
        look()
        answer(alpha, numbers(replace(beat(gpus=2), cpu_pct=11.0)))
        answer(beta, numbers(replace(beat(name="beta"), cpu_pct=22.0)))
        told = []
        for _ in range(2):
            heartbeat_writer.write()
            told.append(sorted(row.vitals["cpu_pct"] for row in Node.objects.all()))
        assert told == [[3.0, 11.0], [11.0, 22.0]]

    def test_of_a_node_that_holds_a_run_cost_none_either(
        self, who: Principal, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        played, run = running(who)
        played.report()
        look()
        told = numbers(beat(), living=((run.pk, 1),), attempts=tuple(played.facts.values()))
        with django_assert_num_queries(0):
            ack = answer(played.node, replace(told, agent="test"))
        assert ack is not None
        assert ack.interval_s == 1.0


class TestMoreThanNumbers:
    @pytest.mark.parametrize(
        "changed",
        [
            {"hostname": "renamed"},
            {"slots": 3},
            {"driver": "550.1"},
            {"nvml": "The driver does not answer."},
            {"disk_free_bytes": 2**20},
        ],
    )
    def test_a_change_of_facts_goes_the_long_way(self, alpha: Node, changed: dict[str, object]) -> None:
        assert answer(alpha, numbers(replace(beat(gpus=2), **changed))) is None  # type: ignore[arg-type]

    def test_so_do_logs_and_events_and_reports_without_a_heartbeat(self, alpha: Node) -> None:
        assert answer(alpha, numbers(logs=(LogChunk("r", 1, "l", 0, b"x"),))) is None
        assert answer(alpha, numbers(events=(GpuEvent(1, 0.0, "xid", "GPU-alpha-0", 79),))) is None
        assert answer(alpha, numbers(heartbeat=None)) is None

    def test_so_does_a_gpu_that_came_or_went_or_was_changed_by_somebody_else(self, alpha: Node) -> None:
        assert answer(alpha, numbers(beat(gpus=1))) is None
        Gpu.objects.filter(index=1).update(state="lost")
        look()
        assert answer(alpha, numbers()) is None

    def test_so_does_a_run_that_is_to_be_stopped_or_that_nobody_knows(self, who: Principal) -> None:
        played, run = running(who)
        played.tell(run, "running", alive(0))
        told = numbers(beat(), living=((run.pk, 1),), attempts=tuple(played.facts.values()), agent="test")
        assert answer(played.node, replace(told, living=(("f" * 32, 1),), attempts=())) is None
        type(run).objects.filter(pk=run.pk).update(state="CancelRequested")
        look()
        assert answer(played.node, told) is None

    def test_so_does_news_of_a_run(self, who: Principal) -> None:
        played, run = running(who)
        look()
        news = AttemptFact(run.pk, 1, Phase.UPLOADING, members=(ended(0),))
        assert (
            answer(played.node, numbers(beat(), living=((run.pk, 1),), attempts=(news,), agent="test"))
            is None
        )

    def test_a_node_that_reports_before_its_time_was_woken_and_is_told_what_is_so_now(
        self, alpha: Node
    ) -> None:
        first = numbers()
        ack = answer(alpha, first)
        assert ack is not None
        sessions.for_node(alpha).expect_next(first, ack)
        assert answer(alpha, replace(first, sent_at=first.sent_at + 3)) is None
        assert answer(alpha, replace(first, sent_at=first.sent_at + 5), timedelta(seconds=5)) is not None

    def test_what_was_read_before_a_settlement_is_not_believed_after_it(self, alpha: Node) -> None:
        sessions.for_node(alpha).assignments.invalidate()
        assert answer(alpha, numbers()) is None

    def test_a_clock_that_has_moved_is_journaled_on_the_long_way(self, alpha: Node) -> None:
        told = numbers(sent_at=time.time() + 3600)
        assert answer(alpha, told) is None
        reports.ingest(sessions.for_node(alpha), told)
        assert Node.objects.get().clock_offset_s == pytest.approx(-3600, abs=2)
        assert journal.recent_events(alpha)[0].kind == "clock"


class TestReturns:
    def test_of_an_idle_node_are_journaled_with_the_round(
        self, alpha: Node, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        hub_uptime.pulse(timezone.now() - timedelta(seconds=100))
        silent = timezone.now() - timedelta(seconds=40)
        type(alpha).objects.update(last_report_at=silent)
        alpha.last_report_at = silent
        Hearing.objects.update(until=timezone.now())
        hub_uptime.refresh()
        with django_assert_num_queries(0):
            assert answer(alpha, numbers(), timedelta(0)) is not None
        heartbeat_writer.write()
        assert journal.recent_events(alpha)[0].message == "Reports again, after 40 s of silence."


class TestSessions:
    def test_all_nodes_have_one_after_the_first_refresh(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        tokens = [enrol_node("local", name)[1] for name in ("one", "two", "three")]
        sessions.refresh()
        with django_assert_num_queries(0):
            names = [session.node.name for token in tokens if (session := sessions.recall(token))]
        assert names == ["one", "two", "three"]

    def test_a_revoked_or_replaced_token_is_forgotten_with_the_next(self) -> None:
        made, first = enrol_node("local", "one")
        sessions.refresh()
        _, second = enrol_node("local", "one")
        sessions.refresh()
        session = sessions.recall(second)
        assert session is not None
        assert (sessions.recall(first), session.node) == (None, made)
        revoke_node(made)
        sessions.refresh()
        assert sessions.recall(second) is None

    def test_a_row_that_is_a_second_behind_does_not_make_the_node_silent(self, alpha: Node) -> None:
        _, token = enrol_node("local", "alpha")
        answer(alpha, numbers())
        session = sessions.look_up(token)
        assert session is not None
        assert session.node.last_report_at == alpha.last_report_at


def test_what_a_played_node_tells_is_the_same_on_both_ways(who: Principal) -> None:
    played = Played(node())
    look()
    lightly = answer(played.node, numbers(beat(), agent=""))
    assert lightly is not None
    session = sessions.for_node(played.node)
    assert lightly == reports.ingest(session, numbers(beat(), agent=""), timezone.now() + SOON)
