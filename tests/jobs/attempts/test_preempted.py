"""Low-priority nodes vanish: the run begins anew and keeps its retries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import Cluster, Node
from jobs.attempts.attempt_end import MAX_PREEMPTIONS
from jobs.models import Run, RunEvent
from jobs.recovery import node_loss
from jobs.scheduling import run_actions
from jobs.states import Reason, RunState
from tests.jobs.builders import Played, alive, node, queued, running, spec
from tests.jobs.gangs import heard_at, later, told
from workspaces.access import Principal

pytestmark = pytest.mark.django_db


def vanish(*others: str) -> None:
    """Alpha falls silent until it counts as lost; the others go on."""
    then = later(61)
    heard_at(then, *others)
    node_loss.check_silent_nodes(then)


class TestPreempted:
    def test_the_run_is_queued_again_and_keeps_its_retries(self, who: Principal) -> None:
        _, run = running(who)
        Node.objects.update(low_priority=True)
        vanish()
        run.refresh_from_db()
        assert (run.state, run.reason) == (RunState.QUEUED, Reason.PREEMPTED)
        assert run.sentence == "The low-priority node alpha has disappeared."
        assert (
            "Attempt 1 ended: The low-priority node alpha has disappeared. "
            "Queued again without using up a retry." in told(run)
        )

    def test_so_does_one_of_a_low_priority_cluster(self, who: Principal) -> None:
        _, run = running(who)
        Cluster.objects.update(low_priority=True)
        vanish()
        run.refresh_from_db()
        assert run.state == RunState.QUEUED

    def test_the_retries_are_left_for_failures(self, who: Principal) -> None:
        _, run = running(who, limits={"retries": 1})
        Node.objects.update(low_priority=True)
        vanish()
        Node.objects.update(last_report_at=timezone.now() - timedelta(hours=1))
        beta = Played(node("beta"), nonce="b" * 32)
        run_actions.launch_queued()
        beta.claim(run, attempt=2)
        beta.tell(run, "running", alive(0), attempt=2)
        then = later(61)
        node_loss.check_silent_nodes(then)
        run.refresh_from_db()
        assert (run.state, run.reason) == (RunState.QUEUED, Reason.NODE_LOST)

    def test_not_without_end(self, who: Principal) -> None:
        _, run = running(who)
        Node.objects.update(low_priority=True)
        RunEvent.objects.bulk_create(
            RunEvent(run=run, attempt=0, reason=Reason.PREEMPTED, to_state=RunState.QUEUED)
            for _ in range(MAX_PREEMPTIONS)
        )
        vanish()
        run.refresh_from_db()
        assert (run.state, run.reason) == (RunState.FAILED, Reason.PREEMPTED)

    def test_another_node_is_lost_as_ever(self, who: Principal) -> None:
        _, run = running(who)
        vanish()
        assert Run.objects.get().reason == Reason.NODE_LOST
        run.refresh_from_db()
        assert run.state == RunState.FAILED


class TestPreview:
    def test_says_what_low_priority_means(self, who: Principal) -> None:
        node()
        Cluster.objects.update(low_priority=True)
        (found,) = [
            item for item in run_actions.preview(spec(who), who).findings if "low-priority" in item.message
        ]
        assert (found.level, found.field) == ("hint", "resources.cluster")
        assert "without using up a retry" in found.message

    def test_says_nothing_of_others(self, who: Principal) -> None:
        queued(who)
        assert not [
            item for item in run_actions.preview(spec(who), who).findings if "low-priority" in item.message
        ]
