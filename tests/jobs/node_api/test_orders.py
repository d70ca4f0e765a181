from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from clusters.models import Lease
from jobs import lifecycle
from jobs.logs import log_store
from jobs.models import AttemptNode, Run
from jobs.node_api import claims, reports
from jobs.node_api.node_session import sessions
from jobs.scheduling import run_actions
from jobs.states import Reason, RunState
from tests.jobs.builders import Played, beat, ended, launched, node, running, two_nodes
from trainhub_launch.report import Report
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
LOG = "70_driver_log.txt"


class TestSettle:
    def test_waits_for_the_last_byte_of_every_log(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.log(run, LOG, 0, b"12")
        assert not alpha.tell(run, "done", ended(0), logs={LOG: 4}).settled
        assert not log_store.is_complete(run.pk, 1, LOG)
        run.refresh_from_db()
        assert run.state == RunState.FINALIZING
        alpha.log(run, LOG, 2, b"34")
        run.refresh_from_db()
        assert run.state == RunState.COMPLETED
        assert log_store.is_complete(run.pk, 1, LOG)
        assert AttemptNode.objects.get().settled_at is not None

    def test_is_told_again_to_a_node_that_missed_it(self, who: Principal) -> None:
        alpha, run = running(who)
        fact = alpha.facts[(run.pk, 1)]
        alpha.tell(run, "done", ended(0))
        alpha.facts[(run.pk, 1)] = fact
        assert alpha.report().settled == ((run.pk, 1),)


class TestOrders:
    def test_an_unclaimed_placement_is_offered_again(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        assert alpha.report().start == ((run.pk, 1),)
        alpha.claim(run)
        assert alpha.report().start == ()

    def test_an_attempt_that_the_hub_does_not_know_is_to_end(self, who: Principal) -> None:
        alpha = Played(node())
        ack = alpha.report(living=(("f" * 32, 1),))
        assert [(order.run, order.why) for order in ack.stop] == [("f" * 32, "orphan")]

    def test_so_is_one_that_has_been_given_up(self, who: Principal) -> None:
        alpha, run = running(who)
        lifecycle.advance(run.pk, RunState.FAILED, Reason.NODE_LOST, facts={"node": "alpha", "seconds": 60})
        assert [order.why for order in alpha.report().stop] == ["orphan"]

    def test_what_has_been_given_up_frees_its_gpus_once_it_is_gone(self, who: Principal) -> None:
        alpha, run = running(who)
        lifecycle.advance(run.pk, RunState.FAILED, Reason.NODE_LOST, facts={"node": "alpha", "seconds": 60})
        assert Lease.objects.filter(released_at=None).exists()
        alpha.tell(run, "done", ended(0, None, signal=9, ended_by_us=True), stopping="orphan")
        assert not Lease.objects.filter(released_at=None).exists()
        run.refresh_from_db()
        assert run.reason == Reason.NODE_LOST

    def test_nothing_is_said_of_what_the_report_does_not_name(self, who: Principal) -> None:
        alpha, run = running(who)
        lifecycle.advance(run.pk, RunState.FAILED, Reason.NODE_LOST, facts={"node": "alpha", "seconds": 60})
        alpha.facts.clear()
        assert alpha.report(living=()).stop == ()

    def test_a_run_that_its_node_has_lost_fails_as_orphaned(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.facts.clear()
        alpha.report(living=())
        run.refresh_from_db()
        assert run.state == RunState.RUNNING
        alpha.report(living=(), now=timezone.now() + reports.ORPHANED_AFTER + timedelta(seconds=10))
        run.refresh_from_db()
        assert (run.state, run.sentence) == (
            RunState.FAILED,
            "Node alpha no longer holds the run's processes.",
        )
        assert not Lease.objects.filter(released_at=None).exists()

    def test_reports_come_quickly_while_something_lives(self, who: Principal) -> None:
        alpha, run = running(who)
        assert alpha.report().interval_s == 1.0
        alpha.tell(run, "done", ended(0))
        assert alpha.report().interval_s == 5.0

    def test_reports_come_often_enough_for_a_hub_with_little_patience(self, settings: Settings) -> None:
        settings.NODE_UNREACHABLE_AFTER = 3
        assert Played(node()).report().interval_s == 1.5

    def test_a_lost_run_that_was_being_canceled_is_canceled(self, who: Principal) -> None:
        alpha, run = running(who)
        run_actions.cancel(run, who.user)
        alpha.facts.clear()
        alpha.report(living=())
        alpha.report(living=(), now=timezone.now() + reports.ORPHANED_AFTER + timedelta(seconds=10))
        run.refresh_from_db()
        assert (run.state, run.sentence) == (RunState.CANCELED, "Canceled by carl.")


class TestHalfStarted:
    """Two nodes, of which one has claimed its part and the other has not."""

    def half_started(self, who: Principal) -> tuple[Played, Run]:
        _, beta, run = two_nodes(who)
        beta.claim(run)
        return beta, run

    def test_a_cancel_does_not_wait_for_the_node_that_never_asked(self, who: Principal) -> None:
        beta, run = self.half_started(who)
        run_actions.cancel(run, who.user)
        beta.tell(run, "done", ended(1, None, signal=15, ended_by_us=True), stopping="canceled")
        run.refresh_from_db()
        assert run.state == RunState.CANCELED
        assert not Lease.objects.filter(released_at=None).exists()

    def test_nor_does_a_failure(self, who: Principal) -> None:
        beta, run = self.half_started(who)
        beta.tell(run, "done", error="No space left.", error_kind="snapshot")
        run.refresh_from_db()
        assert (run.state, run.reason) == (RunState.FAILED, Reason.SNAPSHOT_FAILED)
        assert not Lease.objects.filter(released_at=None).exists()


def test_a_log_that_its_run_has_removed_again_is_complete_with_the_run(who: Principal) -> None:
    alpha, run = running(who)
    alpha.log(run, "logs/temporary.txt", 0, b"x")
    alpha.tell(run, "done", ended(0))
    assert log_store.is_complete(run.pk, 1, "logs/temporary.txt")


class TestBusyHub:
    """A node must not lose a run because its hub answers late."""

    def test_a_report_that_waited_is_judged_by_when_it_was_sent(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.facts.clear()
        sent_at = timezone.now().timestamp()
        report = Report(agent="test", sequence=99, sent_at=sent_at, living=(), heartbeat=beat(name="alpha"))
        late = timezone.now() + reports.ORPHANED_AFTER + timedelta(seconds=5)
        reports.ingest(sessions.for_node(alpha.node), report, late)
        run.refresh_from_db()
        assert run.state == RunState.RUNNING

    def test_a_claim_that_is_not_answered_yet_is_no_loss(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.facts.clear()
        session = sessions.for_node(alpha.node)
        with session.claim_in_progress((run.pk, 1)):
            alpha.report(living=(), now=timezone.now() + reports.ORPHANED_AFTER + timedelta(seconds=10))
            run.refresh_from_db()
            assert run.state == RunState.RUNNING
        for times in (2, 3):
            run.refresh_from_db()
            assert run.state == RunState.RUNNING
            alpha.report(
                living=(), now=timezone.now() + times * (reports.ORPHANED_AFTER + timedelta(seconds=10))
            )
        run.refresh_from_db()
        assert run.reason == Reason.ORPHANED

    def test_a_claim_that_another_server_has_answered_by_a_wrong_clock_is_no_loss(
        self, who: Principal
    ) -> None:
        alpha, run = running(who)
        minute_ago = timezone.now() - timedelta(minutes=1)
        AttemptNode.objects.update(claimed_at=minute_ago)
        # The node's new server knows nothing of the claim, whose answer is still on its way.
        sessions.clear()
        told = alpha.facts.copy()
        alpha.facts.clear()
        for _ in range(2):
            alpha.report(living=())
        run.refresh_from_db()
        assert run.state == RunState.RUNNING
        assert Lease.objects.filter(released_at=None).exists()
        alpha.facts.update(told)
        alpha.report()
        alpha.facts.clear()
        # What was named meanwhile is missed anew.
        alpha.report(living=(), now=timezone.now() + reports.ORPHANED_AFTER + timedelta(seconds=10))
        run.refresh_from_db()
        assert run.state == RunState.RUNNING

    def test_a_refused_claim_leaves_nothing_in_memory(self, who: Principal) -> None:
        alpha, _ = running(who)
        session = sessions.for_node(alpha.node)
        before = dict(session.claims_answered_at)
        for number in range(3):
            with pytest.raises(claims.Refused), session.claim_in_progress((f"no run {number}", 1)):
                claims.claim(alpha.node, f"no run {number}", 1, "b" * 32, [6105])
        assert session.claims_answered_at == before
        assert not session.claims_under_way
