from __future__ import annotations

from typing import Any

import pytest

from clusters import leases
from clusters.models import Cluster, Lease
from jobs.models import Attempt, Member, Run
from jobs.scheduling import run_actions
from jobs.states import RunState
from tests.jobs.builders import Played, ended, launched, node, processes, queued
from tests.people import make_person, make_workspace, principal_of
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def state_of(run: Run) -> tuple[str, str]:
    run.refresh_from_db()
    return run.state, run.sentence


class TestLaunch:
    def test_leases_a_node_and_writes_down_the_attempt(self, who: Principal) -> None:
        node(slots=8)
        run = launched(who, distribution=processes(3))
        assert run.state == RunState.PROVISIONING
        assert Lease.objects.get().slots == 3
        assert Attempt.objects.get().placement[0]["name"] == "alpha"
        assert [(member.rank, member.local_rank) for member in Member.objects.all()] == [
            (0, 0),
            (1, 1),
            (2, 2),
        ]

    def test_twice_is_once(self, who: Principal) -> None:
        node()
        run = launched(who)
        run_actions.launch(run.pk)
        run_actions.launch_queued()
        assert Attempt.objects.count() == Lease.objects.count() == 1

    def test_gpus_are_given_by_uuid(self, who: Principal) -> None:
        node(gpus=4)
        launched(who, distribution=processes(2), resources={"gpus_per_node": 2})
        assert Lease.objects.get().gpus == ["GPU-alpha-0", "GPU-alpha-1"]
        assert [member.gpus for member in Member.objects.all()] == [["GPU-alpha-0"], ["GPU-alpha-1"]]

    def test_a_run_that_does_not_fit_now_waits_and_says_for_what(self, who: Principal) -> None:
        node(slots=4)
        first = launched(who, distribution=processes(4))
        second = launched(who, distribution=processes(2))
        state, sentence = state_of(second)
        assert state == RunState.QUEUED
        assert sentence == (
            "Waiting for 1 node with 2 process slots: alpha has 0 of 4 process slots free; they are held "
            f"by run {first.number}."
        )

    def test_it_starts_when_the_place_is_free(self, who: Principal) -> None:
        alpha = Played(node(slots=4))
        first = launched(who, distribution=processes(4))
        second = launched(who, distribution=processes(2))
        alpha.claim(first)
        alpha.finish(first, *(ended(rank) for rank in range(4)))
        run_actions.launch_queued()
        assert state_of(second) == (RunState.PROVISIONING, "")

    def test_nobody_overtakes(self, who: Principal) -> None:
        node(slots=4)
        launched(who, distribution=processes(3))
        large = launched(who, distribution=processes(4))
        small = launched(who)
        assert state_of(small) == (RunState.QUEUED, f"Waiting behind run {large.number}.")

    def test_but_a_run_without_gpus_does_not_wait_for_one_with(self, who: Principal) -> None:
        node(gpus=1)
        launched(who, resources={"gpus_per_node": 1})
        launched(who, resources={"gpus_per_node": 1})
        assert launched(who).state == RunState.PROVISIONING

    def test_a_run_that_can_never_fit_any_more_fails_and_says_why(self, who: Principal) -> None:
        alpha = node(slots=4)
        run = queued(who, distribution=processes(4))
        alpha.slots = 2
        alpha.save()
        run_actions.launch(run.pk)
        state, sentence = state_of(run)
        assert state == RunState.FAILED
        assert "alpha comes nearest with 2 process slots" in sentence

    def test_without_a_node_it_waits(self, who: Principal) -> None:
        run = launched(who)
        assert state_of(run) == (RunState.QUEUED, "The cluster has no node that is ready.")
        node()
        run_actions.launch_queued()
        assert state_of(run)[0] == RunState.PROVISIONING

    def test_a_cluster_that_is_gone_fails_the_run(self, who: Principal) -> None:
        run = queued(who)
        Cluster.objects.all().delete()
        run_actions.launch(run.pk)
        assert state_of(run) == (RunState.FAILED, "The cluster 'local' no longer exists.")

    def test_a_run_that_we_cannot_read_fails_as_our_mistake_and_does_not_block_the_queue(
        self, who: Principal
    ) -> None:
        node()
        broken, fine = queued(who), queued(who)
        Run.objects.filter(pk=broken.pk).update(spec={**broken.spec, "distribution": {"type": "unheard of"}})
        run_actions.launch_queued()
        state, sentence = state_of(broken)
        assert state == RunState.FAILED
        assert sentence.startswith("TrainHub itself failed")
        assert state_of(fine)[0] == RunState.PROVISIONING


class TestCancel:
    def test_a_queued_run_ends_at_once(self, who: Principal) -> None:
        run = queued(who)
        assert run_actions.cancel(run, who.user)
        assert state_of(run) == (RunState.CANCELED, "Canceled by carl.")
        assert AuditEvent.objects.filter(verb="run.cancel", actor="carl").exists()

    def test_so_does_one_that_no_node_has_claimed(self, who: Principal) -> None:
        node()
        run = launched(who)
        run_actions.cancel(run, who.user)
        assert state_of(run)[0] == RunState.CANCELED
        assert not Lease.objects.filter(released_at=None).exists()

    def test_a_running_one_is_asked_for_and_ends_when_its_node_says_so(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        alpha.claim(run)
        alpha.tell(run, "running")
        assert run_actions.cancel(run, who.user)
        assert state_of(run)[0] == RunState.CANCEL_REQUESTED
        (order,) = alpha.report().stop
        assert (order.run, order.why, order.grace_s) == (run.pk, "canceled", 10)
        alpha.tell(run, "done", ended(0, code=None, signal=15, ended_by_us=True), stopping="canceled")
        assert state_of(run) == (RunState.CANCELED, "Canceled by carl.")

    def test_twice_is_once(self, who: Principal) -> None:
        run = queued(who)
        assert [run_actions.cancel(run, who.user), run_actions.cancel(run, who.user)] == [True, False]

    def test_is_no_failure_to_try_again_after(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who, limits={"retries": 3})
        alpha.claim(run)
        run_actions.cancel(run, who.user)
        alpha.tell(run, "done", ended(0, 1))
        assert state_of(run)[0] == RunState.CANCELED


class TestRetry:
    def test_a_failed_attempt_is_followed_by_another(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who, limits={"retries": 1})
        alpha.claim(run)
        alpha.finish(run, ended(0, 3))
        run.refresh_from_db()
        assert run.state == RunState.QUEUED
        event = run.events.last()
        assert event is not None
        assert event.message == (
            "Attempt 1 failed: Rank 0 exited with code 3 on alpha. Trying again, with no further after that."
        )
        run_actions.launch(run.pk)
        alpha.claim(run, attempt=2)
        alpha.finish(run, attempt=2)
        assert state_of(run)[0] == RunState.COMPLETED
        assert [attempt.number for attempt in run.attempts.order_by("number")] == [1, 2]

    def test_until_none_is_left(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who, limits={"retries": 1})
        for attempt in (1, 2):
            alpha.claim(run, attempt=attempt)
            alpha.finish(run, ended(0, 3), attempt=attempt)
            run_actions.launch_queued()
        assert state_of(run) == (RunState.FAILED, "Rank 0 exited with code 3 on alpha.")


def test_another_workspaces_run_is_only_called_busy(who: Principal, other: Principal) -> None:
    node(slots=1)
    launched(other)
    assert "another workspace" in state_of(launched(who))[1]


@pytest.fixture
def other(db: Any) -> Principal:
    return principal_of(make_person("otto", Role.CONTRIBUTOR, make_workspace("other")))


def test_leases_are_named_after_the_run(who: Principal) -> None:
    node()
    run = launched(who)
    assert Lease.objects.get().label == f"run {run.number}"
    assert leases.release(run.pk, 1) == 1
