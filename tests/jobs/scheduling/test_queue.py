"""The queue with its database: priority, overtaking, gangs, two workers at once, and what each waiting run is
told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from clusters.models import Hearing, Lease, Node
from jobs import lifecycle
from jobs.models import Attempt, Run
from jobs.scheduling import queue_placement, run_actions
from jobs.scheduling.run_actions import SubmitRefused
from jobs.states import Reason, RunState
from tests.concurrency import run_at_once
from tests.jobs.builders import Played, launched, node, queued, spec
from tests.people import make_person, make_workspace, principal_of
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(db: Any) -> Principal:
    return principal_of(make_person("olivia", Role.OWNER))


def gpus(count: int, nodes: int = 1) -> dict[str, Any]:
    """A run of one process for each GPU."""
    distribution = {"type": "pytorch", "process_count": count * nodes, "node_count": nodes}
    return {"distribution": distribution, "resources": {"gpus_per_node": count}}


def told(run: Run) -> str:
    run.refresh_from_db()
    return run.sentence if run.state == RunState.QUEUED else run.state


class TestPriority:
    def test_the_higher_one_goes_first_and_the_older_among_equals(
        self, who: Principal, owner: Principal
    ) -> None:
        node(gpus=1)
        launched(who, **gpus(1))
        low, first, second = (
            queued(who, priority=-5, **gpus(1)),
            queued(who, **gpus(1)),
            queued(who, **gpus(1)),
        )
        urgent = queued(owner, priority=5, **gpus(1))
        assert [run.number for run in Run.objects.queued()] == [
            urgent.number,
            first.number,
            second.number,
            low.number,
        ]
        run_actions.launch_queued()
        assert told(urgent).startswith("Waiting for 1 node with 1 GPU: alpha has 0 of 1 GPU free")
        assert told(first) == f"Waiting behind run {urgent.number} (priority 5)."
        assert told(second) == f"Waiting behind run {first.number}."
        assert told(low) == f"Waiting behind run {second.number} (priority 0)."

    def test_above_zero_is_for_owners_and_operators(self, who: Principal, owner: Principal) -> None:
        node()
        with pytest.raises(
            SubmitRefused, match="only an owner of the workspace may set a value above 0"
        ) as refused:
            run_actions.submit(spec(who, priority=1), who)
        assert refused.value.field == "priority"
        assert queued(who, priority=-10).priority == -10
        assert queued(owner, priority=10).priority == 10
        who.user.is_operator = True
        assert queued(who, priority=1).priority == 1


class TestOvertaking:
    def test_a_small_run_takes_a_node_that_is_too_small_for_the_large_one(self, who: Principal) -> None:
        node("alpha", gpus=4)
        node("beta", gpus=1)
        launched(who, **gpus(2))
        large = launched(who, **gpus(4))
        assert told(launched(who, **gpus(1))) == RunState.PROVISIONING
        assert told(launched(who, **gpus(2))) == f"Waiting behind run {large.number}."

    def test_one_that_waits_for_a_lost_node_does_not_stop_the_rest(self, who: Principal) -> None:
        now = timezone.now()
        Hearing.objects.create(pk=1, since=now - timedelta(days=1), until=now + timedelta(days=1))
        node("alpha", gpus=2)
        node("beta", gpus=2)
        Node.objects.filter(name="beta").update(last_report_at=now - timedelta(minutes=5))
        large = launched(who, **gpus(2, nodes=2))
        assert (
            told(large)
            == "Waiting for 2 nodes with 2 GPUs each: alpha is free. beta has not reported for 5 min."
        )
        assert told(launched(who, **gpus(2))) == RunState.PROVISIONING


class TestGangs:
    def test_all_nodes_or_none(self, who: Principal) -> None:
        node("alpha", gpus=2)
        node("beta", gpus=2)
        small = launched(who, **gpus(1))
        gang = launched(who, **gpus(2, nodes=2))
        assert told(gang) == (
            "Waiting for 2 nodes with 2 GPUs each: beta is free. alpha has 1 of 2 GPUs free; the other "
            "is held by run "
            f"{small.number}."
        )
        assert Lease.objects.count() == 1
        run_actions.cancel(small, who.user)
        run_actions.launch_queued()
        assert told(gang) == RunState.PROVISIONING
        assert {lease.node.name: lease.gpus for lease in Lease.objects.filter(holder=gang.pk)} == {
            "alpha": ["GPU-alpha-0", "GPU-alpha-1"],
            "beta": ["GPU-beta-0", "GPU-beta-1"],
        }

    def test_ten_nodes_of_two_are_refused_with_what_would_fit(self, who: Principal) -> None:
        node("alpha", gpus=4)
        node("beta", gpus=4)
        with pytest.raises(
            SubmitRefused, match="the cluster has 2 nodes; ask for at most 2 nodes"
        ) as refused:
            run_actions.submit(spec(who, **gpus(4, nodes=10)), who)
        assert refused.value.field == "distribution.node_count"
        with pytest.raises(SubmitRefused, match="ask for at most 4 GPUs per node") as refused:
            run_actions.submit(spec(who, **gpus(8, nodes=2)), who)
        assert refused.value.field == "resources.gpus_per_node"

    def test_gpus_of_a_node_that_has_not_proved_the_end_are_named(self, who: Principal) -> None:
        alpha = Played(node("alpha", gpus=2))
        lost = launched(who, **gpus(2))
        alpha.claim(lost)
        lifecycle.advance(lost.pk, RunState.FAILED, Reason.NODE_LOST, facts={"node": "alpha", "seconds": 60})
        assert told(launched(who, **gpus(1))) == (
            "Waiting for 1 node with 1 GPU: alpha has 0 of 2 GPUs free; "
            f"2 GPUs of alpha stay reserved until alpha confirms that run {lost.number} has ended."
        )


class TestSentences:
    def test_are_not_written_again_while_they_hold(
        self, who: Principal, django_assert_max_num_queries: Any
    ) -> None:
        node(gpus=1)
        for _ in range(12):
            queued(who, **gpus(1))
        run_actions.launch_queued()
        with django_assert_max_num_queries(25):
            run_actions.launch_queued()

    def test_of_another_workspace_give_nothing_away(self, who: Principal) -> None:
        other = principal_of(make_person("otto", Role.CONTRIBUTOR, make_workspace("other")))
        node(gpus=1)
        launched(other, **gpus(1))
        first, second = launched(other, **gpus(1)), launched(who, **gpus(1))
        assert told(second) == "Waiting behind a run of another workspace."
        run_actions.cancel(first, other.user)
        run_actions.launch_queued()
        assert told(second).endswith("it is held by another workspace.")


@pytest.mark.django_db(transaction=True)
class TestAtTheSameTime:
    def test_workers_that_walk_at_once_give_nothing_twice_and_no_gang_in_part(self, who: Principal) -> None:
        for name in ("alpha", "beta", "gamma"):
            node(name, gpus=4)
        Node.objects.update(address=F("name"))
        runs = [
            queued(who, **gpus(*size))
            for size in [(2, 2), (1, 1), (4, 1), (2, 3), (1, 1), (1, 2), (3, 1), (2, 2)]
        ]
        run_at_once(*[queue_placement.place_queued] * 4)
        held = [uuid for lease in Lease.objects.all() for uuid in lease.gpus]
        assert held
        assert len(held) == len(set(held))
        for run in runs:
            run.refresh_from_db()
            wanted = run.spec["distribution"]["node_count"] if run.state == RunState.PROVISIONING else 0
            assert Lease.objects.filter(holder=run.pk).count() == wanted
            assert Attempt.objects.filter(run=run).count() == bool(wanted)
        assert runs[0].state == RunState.PROVISIONING
