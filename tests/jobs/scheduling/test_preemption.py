"""Preemption in the hub: who has to stop, what it is told, where it waits again, and who gets its GPUs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters import offers
from clusters.models import Cluster, Lease
from jobs.models import Run
from jobs.scheduling import preemption, run_actions
from jobs.states import Reason, RunState
from tests.jobs.builders import Played, alive, ended, launched, node, queued
from tests.people import make_person, make_workspace, principal_of
from trainhub_launch.frameworks import demand
from trainhub_launch.report import Ack
from trainhub_launch.spec_reader import read_spec
from trainhub_launch.states import StopReason
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db


class PlayedWithGpus(Played):
    """Its reports leave the GPUs as they are."""

    def report(self, **more: Any) -> Ack:
        return super().report(**{"heartbeat": False, **more})


def gpus(count: int, nodes: int = 1, **more: Any) -> dict[str, Any]:
    distribution = {"type": "pytorch", "process_count": count * nodes, "node_count": nodes}
    return {"distribution": distribution, "resources": {"gpus_per_node": count}, **more}


def started(played: Played, who: Principal, ranks: int = 1, **changes: Any) -> Run:
    run = launched(who, **changes)
    played.claim(run)
    played.tell(run, "running", *(alive(rank) for rank in range(ranks)))
    Lease.objects.filter(holder=run.pk).update(created_at=timezone.now() - timedelta(hours=1))
    run.refresh_from_db()
    return run


def told(run: Run) -> str:
    run.refresh_from_db()
    return run.sentence if run.state == RunState.QUEUED else run.state


def stop(
    played: Played, run: Run, ranks: int = 1, attempt: int = 1, why: StopReason = StopReason.PREEMPTED
) -> None:
    """The node stops the ranks that it was told to stop."""
    signaled = [ended(rank, None, signal=15, ended_by_us=True) for rank in range(ranks)]
    played.tell(run, "done", *signaled, attempt=attempt, stopping=why)


def held(run: Run) -> list[tuple[int, int]]:
    """The attempts and GPUs of the run's open leases."""
    rows = Lease.objects.filter(holder=run.pk, released_at=None).order_by("node__name")
    return [(lease.attempt, len(lease.gpus)) for lease in rows]


class TestVictim:
    # A hub of the version before gave nodes the other reason.
    @pytest.mark.parametrize("why", [StopReason.PREEMPTED, StopReason.CANCELED])
    def test_is_stopped_queued_again_at_its_place_and_keeps_its_retries(
        self, who: Principal, why: StopReason
    ) -> None:
        alpha = PlayedWithGpus(node(gpus=2))
        low = started(alpha, who, priority=-1, **gpus(1))
        Run.objects.filter(pk=low.pk).update(created_at=timezone.now() - timedelta(hours=2))
        other = queued(who, priority=-1, **gpus(2))
        urgent = launched(who, **gpus(2))
        assert told(urgent) == f"Waiting for the end of run {low.number}, preempted for it."
        (order,) = alpha.report().stop
        assert (order.run, order.grace_s, order.why) == (low.pk, 10, StopReason.PREEMPTED)
        assert low.events.filter(message__startswith=f"Run {urgent.number} of higher priority").exists()
        stop(alpha, low, why=why)
        low.refresh_from_db()
        assert (low.state, low.reason) == (RunState.QUEUED, Reason.PREEMPTED_BY_RUN)
        assert low.sentence == f"Preempted: run {urgent.number} of higher priority needed its resources."
        run_actions.launch_queued()
        assert told(urgent) == RunState.PROVISIONING
        assert list(Run.objects.queued()) == [low, other]

    def test_may_be_preempted_again_and_again(self, who: Principal) -> None:
        alpha = PlayedWithGpus(node(gpus=1))
        low = started(alpha, who, priority=-1, **gpus(1))
        for attempt in (1, 2):
            urgent = launched(who, **gpus(1))
            stop(alpha, low, attempt=attempt)
            run_actions.launch_queued()
            assert told(urgent) == RunState.PROVISIONING
            run_actions.cancel(urgent, who.user)
            run_actions.launch_queued()
            assert told(low) == RunState.PROVISIONING
            alpha.claim(low, attempt=attempt + 1)
            alpha.tell(low, "running", alive(0), attempt=attempt + 1)
            Lease.objects.filter(holder=low.pk).update(created_at=timezone.now() - timedelta(hours=1))
        alpha.finish(low, ended(0, 1), attempt=3)
        assert told(low) == RunState.FAILED

    def test_that_has_ended_by_itself_is_over(self, who: Principal) -> None:
        alpha = PlayedWithGpus(node(gpus=1))
        low = started(alpha, who, priority=-1, **gpus(1))
        urgent = launched(who, **gpus(1))
        alpha.finish(low, ended(0))
        run_actions.launch_queued()
        assert (told(low), told(urgent)) == (RunState.COMPLETED, RunState.PROVISIONING)

    def test_that_a_person_cancels_meanwhile_is_canceled(self, who: Principal) -> None:
        alpha = PlayedWithGpus(node(gpus=1))
        low = started(alpha, who, priority=-1, **gpus(1))
        launched(who, **gpus(1))
        run_actions.cancel(low, who.user)
        stop(alpha, low)
        assert told(low) == RunState.CANCELED


class TestWho:
    def test_is_left_alone_at_the_same_priority_or_above_the_line(self, who: Principal) -> None:
        owner = principal_of(make_person("olivia", Role.OWNER))
        alpha = PlayedWithGpus(node(gpus=1))
        normal = started(alpha, who, **gpus(1))
        assert "held by" in told(launched(owner, priority=5, **gpus(1)))
        assert told(normal) == RunState.RUNNING

    def test_is_left_alone_by_a_run_that_is_as_low(self, who: Principal) -> None:
        alpha = PlayedWithGpus(node(gpus=1))
        low = started(alpha, who, priority=-1, **gpus(1))
        launched(who, priority=-1, **gpus(1))
        assert alpha.report().stop == ()
        assert told(low) == RunState.RUNNING

    def test_is_left_alone_for_its_first_minutes(self, who: Principal) -> None:
        alpha = PlayedWithGpus(node(gpus=1))
        low = started(alpha, who, priority=-1, **gpus(1))
        Lease.objects.update(created_at=timezone.now() - timedelta(minutes=9))
        urgent = launched(who, **gpus(1))
        assert alpha.report().stop == ()
        Lease.objects.update(created_at=timezone.now() - timedelta(minutes=11))
        run_actions.launch_queued()
        assert [order.run for order in alpha.report().stop] == [low.pk]
        assert "preempted for it" in told(urgent)

    def test_is_left_alone_if_the_whole_run_would_not_start(self, who: Principal) -> None:
        alpha, beta = (
            PlayedWithGpus(node("alpha", gpus=2)),
            PlayedWithGpus(node("beta", gpus=2), nonce="b" * 32),
        )
        started(alpha, who, priority=-1, ranks=2, **gpus(2))
        started(beta, who, ranks=2, **gpus(2))
        gang = launched(who, **gpus(2, nodes=2))
        assert alpha.report().stop == ()
        assert "preempted" not in told(gang)

    def test_of_another_workspace_is_not_named(self, who: Principal) -> None:
        other = principal_of(make_person("otto", Role.CONTRIBUTOR, make_workspace("other")))
        alpha = PlayedWithGpus(node(gpus=1))
        low = started(alpha, other, priority=-1, **gpus(1))
        assert (
            told(launched(who, **gpus(1)))
            == "Waiting for the end of 1 run of other workspaces, preempted for it."
        )
        stop(alpha, low)
        assert told(low) == "Preempted: a run of another workspace of higher priority needed its resources."


class TestGpus:
    def test_pass_to_the_run_in_the_transaction_that_frees_them(self, who: Principal) -> None:
        alpha, beta = (
            PlayedWithGpus(node("alpha", gpus=2)),
            PlayedWithGpus(node("beta", gpus=2), nonce="b" * 32),
        )
        first = started(alpha, who, priority=-1, ranks=2, **gpus(2))
        second = started(beta, who, priority=-2, ranks=2, **gpus(2))
        gang = launched(who, **gpus(2, nodes=2))
        stop(alpha, first, ranks=2)
        assert held(gang) == [(0, 2), (0, 0)]
        assert held(first) == []
        urgent = launched(principal_of(make_person("olivia", Role.OWNER)), priority=5, **gpus(2))
        assert told(urgent).startswith("Waiting for")
        assert "preempted for it" in told(gang) or "Waiting behind" in told(gang)
        run_actions.cancel(urgent, who.user)
        stop(beta, second, ranks=2)
        assert held(gang) == [(0, 2), (0, 2)]
        run_actions.launch_queued()
        assert told(gang) == RunState.PROVISIONING
        assert held(gang) == [(1, 2), (1, 2)]
        uuids = [uuid for lease in Lease.objects.filter(released_at=None) for uuid in lease.gpus]
        assert len(uuids) == len(set(uuids)) == 4

    def test_are_free_again_if_the_run_is_canceled_meanwhile(self, who: Principal) -> None:
        alpha = PlayedWithGpus(node(gpus=2))
        low = started(alpha, who, priority=-1, ranks=2, **gpus(2))
        urgent = launched(who, **gpus(2))
        run_actions.cancel(urgent, who.user)
        assert held(urgent) == []
        stop(alpha, low, ranks=2)
        run_actions.launch_queued()
        assert told(low) == RunState.PROVISIONING

    def test_that_are_more_than_it_needs_are_left_for_others(self, who: Principal) -> None:
        alpha = PlayedWithGpus(node(gpus=4))
        low = started(alpha, who, priority=-1, ranks=4, **gpus(4))
        urgent, later = launched(who, **gpus(3)), launched(who, **gpus(1))
        stop(alpha, low, ranks=4)
        run_actions.launch_queued()
        run_actions.launch_queued()
        assert (told(urgent), told(later)) == (RunState.PROVISIONING, RunState.PROVISIONING)


def test_two_workers_that_read_the_queue_at_once_preempt_one_run(who: Principal) -> None:
    low = [started(PlayedWithGpus(node(name, gpus=1)), who, **gpus(1), priority=-1) for name in ("a", "b")]
    urgent = queued(who, **gpus(1))
    cluster = Cluster.objects.get(name="local")
    # Both have read what the nodes offer before either preempted.
    nodes = offers.offers(cluster)
    for _ in range(2):
        sentence = preemption.preempt(cluster, urgent, demand(read_spec(urgent.spec)), nodes)
        assert sentence.startswith("Waiting for the end of run")
    stopped = [run for run in low if Lease.objects.filter(holder=run.pk).exclude(promised_to="").exists()]
    assert len(stopped) == 1
