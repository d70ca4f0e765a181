"""A cluster that grows for its queue and shrinks behind it, with a provider of real executables and nodes
played by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from clusters.enrolment.join import join
from clusters.models import Alert, Cluster, ClusterEvent, Lease, Node, ProvidedMachine
from clusters.provisioning import node_admin
from environments.models import EnvironmentVersion
from environments.states import EnvironmentKind
from jobs.models import Run
from jobs.recovery import node_loss, reaper
from jobs.scheduling import cluster_scaling, run_actions
from jobs.scheduling.run_actions import SubmitRefused
from jobs.states import RunState
from tests.clusters.provisioning.builders import FAILS, LATER, Provider, growing, report, tend
from tests.environments.locks import locked
from tests.jobs.builders import queued, spec
from tests.people import make_operator
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
SOON = timedelta(seconds=15)


@pytest.fixture
def provider(tmp_path: Path, settings: Settings) -> Provider:
    settings.NODE_PROVIDERS = str(tmp_path / "providers")
    return Provider(tmp_path / "providers")


@pytest.fixture
def cluster(provider: Provider) -> Cluster:
    return growing()


def three_nodes(gpus: int = 1, count: int = 3) -> dict[str, Any]:
    distribution = {"type": "pytorch", "process_count": gpus * count, "node_count": count}
    return {"distribution": distribution, "resources": {"cluster": "grown", "gpus_per_node": gpus}}


def waits(run: Run) -> str:
    run_actions.launch_queued()
    run.refresh_from_db()
    return run.sentence if run.state == RunState.QUEUED else f"{run.state}: {run.sentence}"


def machines() -> list[ProvidedMachine]:
    return list(ProvidedMachine.objects.order_by("pk"))


def states() -> list[str]:
    return [machine.state for machine in machines()]


def boot(provider: Provider, *chosen: ProvidedMachine) -> list[Node]:
    """These machines come up, join and report."""
    found = []
    for machine in chosen:
        (question,) = [call for call in provider.asked("provision") if call["name"] == machine.name]
        node = join(question["join_token"], "", "cloud-host").node
        report(node, 1)
        found.append(node)
    tend(chosen[0])
    return found


def break_gpu(node: Node) -> None:
    """A critical alert about the node's GPU fires."""
    Alert.objects.create(
        key="gpu_xid",
        kind="gpu_xid",
        node=node,
        subject=node.gpus.get().uuid,
        severity="critical",
        state="firing",
        facts={"cause": "XID 48"},
    )


def all_up(provider: Provider, who: Principal) -> tuple[Run, list[Node]]:
    run = queued(who, **three_nodes())
    run_actions.launch_queued()
    tend(machines()[0])
    up = boot(provider, *machines())
    run_actions.launch_queued()
    run.refresh_from_db()
    assert run.state == RunState.PROVISIONING
    return run, up


class TestGrowing:
    def test_a_run_that_waits_has_its_nodes_made_and_says_so(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        run = queued(who, **three_nodes())
        assert waits(run) == "Scaling up: 0 of 3 nodes are ready, 3 are being created (requested 10 s ago)."
        assert states() == ["wanted"] * 3
        assert waits(run).startswith("Scaling up"), "and asks for no more"
        assert len(machines()) == 3
        assert tend(machines()[0]) == "joining"
        boot(provider, machines()[0])
        assert waits(run) == "Scaling up: 1 of 3 nodes is ready, 2 are being created (requested 10 s ago)."

    def test_once_they_are_there_it_starts(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        run, up = all_up(provider, who)
        assert {lease.node_id for lease in Lease.objects.filter(holder=run.pk)} == {node.pk for node in up}
        assert len(machines()) == 3

    def test_no_machine_is_made_for_what_none_of_those_there_can_do(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        first = queued(who, resources={"cluster": "grown", "gpus_per_node": 1})
        waits(first)
        tend(machines()[0])
        boot(provider, *machines())
        assert len(machines()) == 1
        locked(who)
        boxed = queued(who, environment={"name": "mine"}, resources={"cluster": "grown", "gpus_per_node": 1})
        EnvironmentVersion.objects.update(kind=EnvironmentKind.IMAGE)
        assert waits(boxed).startswith("Waiting for 1 node")
        assert len(machines()) == 1

    def test_the_preview_shows_the_plan_and_says_what_comes(self, cluster: Cluster, who: Principal) -> None:
        found = run_actions.preview(spec(who, **three_nodes()), who)
        assert found.errors == ()
        assert found.plan is not None
        assert len(found.plan.commands) == 3
        assert any(
            "up to 3 nodes can be added to it for runs that wait" in item.message for item in found.findings
        )

    def test_more_nodes_than_it_grows_to_are_refused_when_submitted(
        self, cluster: Cluster, who: Principal
    ) -> None:
        with pytest.raises(SubmitRefused, match="grows to 3 nodes; ask for at most 3 nodes"):
            run_actions.submit(spec(who, **three_nodes(count=4)), who)

    def test_and_in_the_queue_where_it_shrank_since(self, cluster: Cluster, who: Principal) -> None:
        run = queued(who, **three_nodes())
        Cluster.objects.update(max_nodes=2)
        assert waits(run).startswith("Failed: ")
        assert machines() == []

    def test_larger_nodes_than_can_be_made_are_refused(self, cluster: Cluster, who: Principal) -> None:
        with pytest.raises(SubmitRefused, match="comes nearest with 1 GPU"):
            run_actions.submit(spec(who, **three_nodes(gpus=8, count=1)), who)

    def test_a_drained_cluster_grows_for_nobody(self, cluster: Cluster, who: Principal) -> None:
        queued(who, **three_nodes())
        Cluster.objects.update(drained_at=timezone.now())
        run_actions.launch_queued()
        assert machines() == []

    def test_an_unhealthy_gpu_has_one_more_node_made_and_no_third(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        run = queued(who, **three_nodes(count=1))
        run_actions.launch_queued()
        tend(machines()[0])
        (node,) = boot(provider, *machines())
        break_gpu(node)
        for _ in range(3):
            assert waits(run).startswith("Scaling up")
        _, second = machines()
        tend(second)
        boot(provider, second)
        run_actions.launch_queued()
        run.refresh_from_db()
        assert run.state == RunState.PROVISIONING
        assert Lease.objects.get().node.name == second.name
        assert len(machines()) == 2

    def test_at_its_largest_the_run_waits_with_the_fault_as_the_reason(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        Cluster.objects.update(max_nodes=1)
        run = queued(who, **three_nodes(count=1))
        run_actions.launch_queued()
        tend(machines()[0])
        (node,) = boot(provider, *machines())
        break_gpu(node)
        assert (
            waits(run) == f"Waiting for 1 node with 1 GPU: {node.name} has 1 GPU free but unhealthy: XID 48."
        )
        assert len(machines()) == 1

    def test_the_least_number_is_made_without_any_run(self, cluster: Cluster) -> None:
        Cluster.objects.update(min_nodes=2)
        cluster_scaling.scale_clusters()
        cluster_scaling.scale_clusters()
        assert states() == ["wanted"] * 2

    def test_a_provider_that_fails_is_named_to_the_run(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        provider.script("provision", FAILS)
        run = queued(who, **three_nodes(count=1))
        waits(run)
        (machine,) = machines()
        tend(machine)
        assert "has failed before and is tried again: provision exited with code 3: no quota left" in waits(
            run
        )
        for step in range(4):
            tend(machine, later=LATER * (step + 1))
        assert machine.state == "failed"
        ProvidedMachine.objects.update(changed_at=timezone.now())
        told = waits(run)
        assert told.startswith("Scaling up has failed and is tried again in")
        assert "no quota left" in told
        assert len(machines()) == 1
        cluster_scaling.scale_clusters(timezone.now() + LATER)
        assert len(machines()) == 2


class TestShrinking:
    def test_idle_nodes_go_after_their_time_and_leave_the_lists(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        run, up = all_up(provider, who)
        run_actions.cancel(run, who.user)
        assert not Lease.objects.filter(released_at=None).exists()
        cluster_scaling.scale_clusters(timezone.now() + timedelta(seconds=50))
        assert states() == ["up"] * 3
        cluster_scaling.scale_clusters(timezone.now() + timedelta(seconds=61))
        assert states() == ["releasing"] * 3
        tend(machines()[0])
        tend(machines()[0], later=SOON)
        assert states() == ["gone"] * 3
        assert len(provider.asked("release")) == 3
        assert not Node.objects.filter(pk__in=[node.pk for node in up], removed_at=None).exists()
        assert Node.objects.filter(pk__in=[node.pk for node in up]).count() == 3, "their history stays"

    def test_a_node_that_is_held_stays(self, provider: Provider, cluster: Cluster, who: Principal) -> None:
        all_up(provider, who)
        cluster_scaling.scale_clusters(timezone.now() + LATER)
        assert states() == ["up"] * 3

    def test_a_node_that_leaves_takes_no_run_any_more(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        run, _ = all_up(provider, who)
        run_actions.cancel(run, who.user)
        cluster_scaling.scale_clusters(timezone.now() + timedelta(seconds=61))
        next_run = queued(who, **three_nodes(count=1))
        run_actions.launch_queued()
        next_run.refresh_from_db()
        assert next_run.state == RunState.QUEUED

    def test_one_that_a_person_drained_is_not_released_unasked(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        run, up = all_up(provider, who)
        run_actions.cancel(run, who.user)
        node_admin.drain(up[0], make_operator())
        cluster_scaling.scale_clusters(timezone.now() + LATER)
        assert sorted(states()) == ["releasing", "releasing", "up"]

    def test_both_are_in_the_journal_of_the_cluster(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        run, _ = all_up(provider, who)
        run_actions.cancel(run, who.user)
        cluster_scaling.scale_clusters(timezone.now() + LATER)
        kinds = list(ClusterEvent.objects.values_list("kind", flat=True))
        assert kinds == ["grows", "grown", "grown", "grown", "shrinks", "shrinks", "shrinks"]


class TestRemoved:
    def test_what_a_removed_node_held_is_free_again(
        self, provider: Provider, cluster: Cluster, who: Principal
    ) -> None:
        """Whoever removes a machine by force vouches that nothing runs there any more."""
        run, up = all_up(provider, who)
        run.attempts.get().parts.update(claimed_at=timezone.now())
        Run.objects.update(state=RunState.RUNNING)
        node_admin.remove(up[0], make_operator(), force=True)
        node_loss.check_silent_nodes()
        reaper.check_runs()
        run.refresh_from_db()
        assert run.state == RunState.FAILED
        assert not Lease.objects.filter(node=up[0], released_at=None).exists()

    def test_its_machine_is_released(self, provider: Provider, cluster: Cluster, who: Principal) -> None:
        run, up = all_up(provider, who)
        run_actions.cancel(run, who.user)
        node_admin.remove(up[0], make_operator())
        tend(machines()[0])
        assert len(provider.asked("release")) == 1
