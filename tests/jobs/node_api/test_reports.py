from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from clusters.models import Lease
from jobs.logs import log_store
from jobs.models import Attempt, AttemptNode, Member
from jobs.node_api import reports
from jobs.node_api.node_session import sessions
from jobs.states import MemberState, RunState
from jobs.tokens import attempt_token
from tests.jobs.builders import (
    Played,
    alive,
    both_running,
    ended,
    launched,
    node,
    processes,
    running,
    two_nodes,
)
from trainhub_launch.report import LogChunk, Report
from workspaces import process_caches
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
LOG = "70_driver_log.txt"


class TestLogs:
    def test_bytes_survive_unchanged(self, who: Principal) -> None:
        alpha, run = running(who)
        data = bytes(range(256))
        assert alpha.log(run, LOG, 0, data) == 256
        assert log_store.read(run.pk, 1, LOG, 0, 999) == data

    def test_a_repeated_chunk_changes_nothing(self, who: Principal) -> None:
        alpha, run = running(who)
        assert [alpha.log(run, LOG, 0, b"one\n"), alpha.log(run, LOG, 0, b"one\n")] == [4, 4]
        assert log_store.size(run.pk, 1, LOG) == 4

    def test_a_hole_is_refused_and_the_ack_names_the_offset(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.log(run, LOG, 0, b"one\n")
        assert alpha.log(run, LOG, 100, b"late\n") == 4

    def test_no_data_asks_for_the_offset(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.log(run, LOG, 0, b"one\n")
        assert alpha.log(run, LOG, 50, b"") == 4

    def test_a_node_writes_no_log_of_a_run_that_is_not_its_own(self, who: Principal) -> None:
        _, run = running(who)
        stranger = Played(node("beta"))
        stranger.log(run, LOG, 0, b"forged\n")
        assert log_store.log_sizes(run.pk, 1) == {}

    def test_nor_the_log_of_a_rank_on_another_node(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.log(run, "70_driver_log_7.txt", 0, b"forged\n")
        assert log_store.log_sizes(run.pk, 1) == {}

    def test_a_name_that_leads_elsewhere_is_dropped_and_does_not_come_again(self, who: Principal) -> None:
        alpha, run = running(who)
        assert alpha.log(run, "logs/../../../x", 0, b"evil") == 4
        assert log_store.log_sizes(run.pk, 1) == {}

    def test_before_the_claim_nothing_is_taken(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        alpha.log(run, LOG, 0, b"early")
        assert log_store.log_sizes(run.pk, 1) == {}

    def test_beyond_the_limit_bytes_are_acknowledged_and_dropped(
        self, who: Principal, settings: Settings
    ) -> None:
        alpha, run = running(who)
        settings.MAX_LOG_BYTES = 10
        alpha.log(run, LOG, 0, b"0123456789")
        assert alpha.log(run, LOG, 10, b"more") == 14
        assert log_store.size(run.pk, 1, LOG) == 10

    def test_of_two_nodes_each_has_a_build_log_of_its_own(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        for played in (beta, alpha):
            played.claim(run)
            played.log(run, "55_preparation_log.txt", 0, played.node.name.encode())
        assert log_store.log_sizes(run.pk, 1) == {
            "55_preparation_log.txt": 5,
            "node_1/55_preparation_log.txt": 4,
        }

    def test_a_flood_of_them_does_not_touch_the_database(
        self, who: Principal, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        alpha, run = running(who)
        alpha.report()
        report = Report(
            "test",
            99,
            time.time(),
            living=((run.pk, 1),),
            attempts=tuple(alpha.facts.values()),
            logs=(LogChunk(run.pk, 1, LOG, 0, b"line\n"),),
        )
        reports.ingest(sessions.for_node(alpha.node), report)
        with django_assert_num_queries(0):
            reports.ingest(sessions.for_node(alpha.node), report)


class TestFacts:
    def test_the_same_report_again_changes_nothing(self, who: Principal) -> None:
        alpha, run = running(who)
        events = run.events.count()
        for _ in range(3):
            alpha.report()
        process_caches.clear_all()
        alpha.report()
        assert run.events.count() == events

    def test_a_sign_of_life_without_news_costs_one_look_and_one_write(
        self, who: Principal, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        alpha, _ = running(who)
        alpha.report()
        with django_assert_num_queries(6):  # its runs and builds; begin, its GPUs, the node, commit
            alpha.report(now=timezone.now() + timedelta(seconds=2))

    def test_members_follow(self, who: Principal) -> None:
        alpha, run = running(who, distribution=processes(2))
        alpha.tell(run, "running", ended(0, 5), alive(1))
        first, second = Member.objects.all()
        assert (first.state, first.exit_code, second.state) == (MemberState.FAILED, 5, MemberState.RUNNING)

    def test_a_late_report_turns_nothing_back(self, who: Principal) -> None:
        alpha, run = running(who)
        late = alpha.facts[(run.pk, 1)]
        alpha.tell(run, "uploading", ended(0))
        alpha.facts[(run.pk, 1)] = late
        alpha.report()
        run.refresh_from_db()
        assert run.state == RunState.FINALIZING
        assert Member.objects.get().state == MemberState.SUCCEEDED

    def test_times_are_the_nodes_but_never_before_the_last_step_nor_in_the_future(
        self, who: Principal
    ) -> None:
        alpha, run = running(who)
        claimed = AttemptNode.objects.get().claimed_at
        assert claimed is not None
        fact = alpha.facts[(run.pk, 1)]
        alpha.facts[(run.pk, 1)] = type(fact)(
            **{**vars(fact), "phase_at": {**fact.phase_at, "uploading": 1.0}}
        )
        alpha.tell(run, "uploading", ended(0))
        alpha.facts[(run.pk, 1)].phase_at["done"] = time.time() + 9999  # type: ignore[index]
        alpha.tell(run, "done")
        run.refresh_from_db()
        assert run.started_at is not None
        assert run.finished_at is not None
        assert claimed <= run.started_at <= run.finished_at <= timezone.now()

    def test_a_rank_that_dies_first_leads_the_story(self, who: Principal) -> None:
        alpha, run = running(who, distribution=processes(2))
        alpha.tell(
            run,
            "done",
            ended(0, None, at=200.0, signal=15, ended_by_us=True),
            ended(1, 3, at=100.0),
            stopping="gang",
        )
        run.refresh_from_db()
        assert run.sentence == "Rank 1 exited with code 3 on alpha."
        assert [member.state for member in Member.objects.all()] == [MemberState.STOPPED, MemberState.FAILED]

    def test_a_failed_environment_is_said_in_the_nodes_words_without_the_token(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        alpha.claim(run)
        token = attempt_token(run.pk, 1)
        alpha.tell(run, "preparing")
        alpha.tell(run, "done", error=f"pip could not find torch==9 ({token}).", error_kind="environment")
        run.refresh_from_db()
        assert run.state == RunState.FAILED
        assert (
            run.sentence
            == "The environment could not be built on alpha: pip could not find torch==9 (••••••)."
        )

    def test_bytes_that_no_database_keeps_are_replaced_and_the_rest_is_told(self, who: Principal) -> None:
        alpha, run = running(who)
        error = "mpirun said \0\0 and ended."
        alpha.tell(run, "done", error=error, error_kind="launch", warnings=("a\0b",), versions={"x": "\0"})
        run.refresh_from_db()
        assert (
            run.sentence == "The processes could not be started on alpha: mpirun said \ufffd\ufffd and ended."
        )
        assert AttemptNode.objects.get().fact["versions"] == {"x": "\ufffd"}

    def test_warnings_are_journaled_once(self, who: Principal) -> None:
        alpha, run = running(who)
        for _ in range(2):
            alpha.tell(run, "running", warnings=("outputs/a was left out: it is a link.",))
        assert Attempt.objects.get().warnings == ["outputs/a was left out: it is a link."]
        assert run.events.filter(message__contains="left out").count() == 1

    def test_facts_of_another_node_are_not_believed(self, who: Principal) -> None:
        _, run = running(who)
        liar = Played(node("beta"))
        ack = liar.tell(run, "done", ended(0, 1))
        run.refresh_from_db()
        assert run.state == RunState.RUNNING
        assert ack.settled == ((run.pk, 1),)

    def test_one_dead_rank_ends_the_gang_on_the_other_node(self, who: Principal) -> None:
        alpha, beta, run = both_running(who)
        alpha.tell(run, "running", ended(0, 1))
        assert [order.why for order in beta.report().stop] == ["gang"]
        alpha.tell(run, "done")
        beta.tell(run, "done", ended(1, None, signal=15, ended_by_us=True), stopping="gang")
        run.refresh_from_db()
        assert run.sentence == "Rank 0 exited with code 1 on alpha."
        assert not Lease.objects.filter(released_at=None).exists()
