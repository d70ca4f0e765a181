from __future__ import annotations

import re
import time
from datetime import timedelta

import pytest
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from clusters.enrolment import node_tokens
from jobs.logs import log_store
from jobs.models import Run
from jobs.node_api import claims
from jobs.recovery import node_loss
from jobs.scheduling import run_actions
from jobs.states import MemberState, Reason, RunState
from tests.jobs.builders import Played, alive, both_running, ended, node, running
from tests.jobs.gangs import heard_at, held, later, members, state_of, told, woken
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
RANK_0, RANK_1 = "70_driver_log_0.txt", "70_driver_log_1.txt"


def cut_off(seconds: float) -> None:
    """Beta has been silent that long, alpha reports."""
    then = later(seconds)
    heard_at(then, "alpha")
    node_loss.check_silent_nodes(then)


class TestSilence:
    def test_is_journaled_once_and_ends_nothing(self, who: Principal) -> None:
        _, _, run = both_running(who)
        for seconds in (12, 14, 30, 45):
            cut_off(seconds)
        assert state_of(run)[0] == RunState.RUNNING
        assert told(run).count("Node beta does not report; waiting for it up to 60 s.") == 1

    def test_a_node_that_is_back_after_half_a_minute_goes_on(self, who: Principal) -> None:
        _, beta, run = both_running(who)
        cut_off(30)
        ack = beta.report(now=later(31))
        assert (ack.stop, state_of(run)[0]) == ((), RunState.RUNNING)
        # The silence began when beta last reported, some moments after the time that `later` counts from.
        (silence,) = [sentence for sentence in told(run) if "reports again" in sentence]
        assert re.fullmatch(r"Node beta reports again, after (2|3)\d s of silence\.", silence)

    def test_costs_little_while_everybody_reports(
        self, who: Principal, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        both_running(who)
        with django_assert_num_queries(1):
            node_loss.check_silent_nodes()


class TestLoss:
    def test_ends_the_attempt_with_its_reason_and_wakes_the_others(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, _, run = both_running(who)
        with django_capture_on_commit_callbacks() as callbacks:
            cut_off(61)
        state, sentence = state_of(run)
        assert (state, run.reason) == (RunState.FAILED, Reason.NODE_LOST)
        # The clock goes on while the test runs.
        assert re.match(r"Node beta has not reported for 6\d s; its resources stay reserved until", sentence)
        assert "alpha" in woken(callbacks)
        assert [order.why for order in alpha.report().stop] == ["orphan"]

    def test_shows_lost_ranks_as_lost_and_the_others_as_they_end(self, who: Principal) -> None:
        alpha, beta, run = both_running(who)
        cut_off(61)
        assert members(run) == [MemberState.STOPPED, MemberState.LOST]
        alpha.tell(run, "done", ended(0), stopping="orphan")
        assert members(run) == [MemberState.SUCCEEDED, MemberState.LOST]
        beta.tell(run, "done", ended(1, None, signal=9, ended_by_us=True), stopping="orphan")
        assert members(run) == [MemberState.SUCCEEDED, MemberState.STOPPED]

    def test_frees_a_node_once_it_has_proved_that_nothing_runs_there(self, who: Principal) -> None:
        alpha, beta, run = both_running(who)
        cut_off(61)
        assert held() == [("alpha", 1), ("beta", 1)]
        alpha.tell(run, "done", ended(0, None, signal=15, ended_by_us=True), stopping="orphan")
        assert held() == [("beta", 1)]
        assert [order.why for order in beta.report().stop] == ["orphan"]
        assert held() == [("beta", 1)]
        beta.tell(run, "done", ended(1, None, signal=9, ended_by_us=True), stopping="orphan")
        assert held() == []
        assert state_of(run)[0] == RunState.FAILED

    def test_closes_the_logs_of_the_lost_node_and_waits_for_the_others(self, who: Principal) -> None:
        alpha, beta, run = both_running(who)
        alpha.log(run, RANK_0, 0, b"one\n")
        beta.log(run, RANK_1, 0, b"one\n")
        beta.log(run, "55_preparation_log.txt", 0, b"ready\n")
        cut_off(61)
        names = (RANK_0, RANK_1, "node_1/55_preparation_log.txt")
        assert [log_store.is_complete(run.pk, 1, name) for name in names] == [False, True, True]
        assert alpha.log(run, RANK_0, 4, b"last\n") == 9
        alpha.tell(
            run, "done", ended(0, None, signal=15, ended_by_us=True), stopping="orphan", logs={RANK_0: 9}
        )
        assert log_store.is_complete(run.pk, 1, RANK_0)

    def test_of_one_that_still_prepares_ends_the_attempt_too(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.tell(run, "done", ended(0))
        _, beta, second = both_running(who)
        beta.facts.clear()
        cut_off(61)
        assert state_of(second)[0] == RunState.FAILED
        assert state_of(run)[0] == RunState.COMPLETED


class TestBlame:
    """A run of which a rank has failed and a node is lost."""

    def test_what_failed_before_the_silence_is_the_reason(self, who: Principal) -> None:
        alpha, _, run = both_running(who)
        alpha.tell(run, "done", ended(0, 3, at=time.time() - 5))
        cut_off(61)
        assert state_of(run) == (RunState.FAILED, "Rank 0 exited with code 3 on alpha.")
        assert any(message.startswith("Node beta has not reported") for message in told(run))

    def test_what_failed_after_it_only_followed(self, who: Principal) -> None:
        alpha, _, run = both_running(who)
        alpha.tell(run, "done", ended(0, 1, at=time.time() + 20))
        cut_off(61)
        assert (state_of(run)[0], run.reason) == (RunState.FAILED, Reason.NODE_LOST)


class TestRevoked:
    def test_a_node_that_is_cut_off_ends_its_runs_at_once(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, beta, run = both_running(who)
        node_tokens.revoke_node(beta.node)
        with django_capture_on_commit_callbacks() as callbacks:
            node_loss.check_silent_nodes(later(1))
        assert state_of(run) == (RunState.FAILED, "Node beta was disconnected: its token has been revoked.")
        assert "alpha" in woken(callbacks)
        assert members(run) == [MemberState.STOPPED, MemberState.LOST]
        assert held() == [("alpha", 1), ("beta", 1)]
        assert [order.why for order in alpha.report().stop] == ["orphan"]


class TestRetry:
    def again(self, who: Principal) -> tuple[Played, Played, Played, Run]:
        """Beta is lost, gamma has come, and the second attempt runs on alpha and gamma."""
        alpha, beta, run = both_running(who, limits={"retries": 1})
        beta.log(run, RANK_1, 0, b"first\n")
        cut_off(61)
        assert state_of(run)[0] == RunState.QUEUED
        heard_at(later(0) - timedelta(seconds=61), "beta")
        gamma = Played(node("gamma"), nonce="c" * 32)
        run_actions.launch_queued()
        return alpha, beta, gamma, run

    def test_does_not_wait_for_the_lost_node(self, who: Principal) -> None:
        alpha, _, gamma, run = self.again(who)
        assert (state_of(run)[0], run.attempt) == (RunState.PROVISIONING, 2)
        assert held() == [("alpha", 1), ("alpha", 2), ("beta", 1), ("gamma", 2)]
        for played in (alpha, gamma):
            played.ready(run, attempt=2)
        for rank, played in enumerate((alpha, gamma)):
            played.claim(run, attempt=2)
            played.tell(run, "done", ended(rank), attempt=2)
        assert state_of(run)[0] == RunState.COMPLETED

    def test_keeps_what_the_first_attempt_has_left(self, who: Principal) -> None:
        *_, run = self.again(who)
        assert log_store.read(run.pk, 1, RANK_1, 0, 99) == b"first\n"
        assert members(run, 1) == [MemberState.STOPPED, MemberState.LOST]
        assert members(run, 2) == [MemberState.WAITING] * 2

    def test_a_late_word_of_the_lost_node_changes_nothing(self, who: Principal) -> None:
        _, beta, _, run = self.again(who)
        for phase, rank in (("running", alive(1)), ("done", ended(1, 7))):
            beta.tell(run, phase, rank)
            assert (state_of(run)[0], run.attempt) == (RunState.PROVISIONING, 2)
        assert members(run, 2) == [MemberState.WAITING] * 2
        with pytest.raises(claims.Refused, match="over"):
            beta.claim(run)
        with pytest.raises(claims.Refused, match="not placed"):
            beta.claim(run, attempt=2)
        assert held() == [("alpha", 1), ("alpha", 2), ("gamma", 2)]
