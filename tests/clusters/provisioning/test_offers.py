"""What is offered to runs of nodes that are drained or only watched, and of GPUs that fell off or are in MIG
mode."""

from __future__ import annotations

import pytest
from django.utils import timezone

from clusters.leases import acquire
from clusters.models import Cluster, Gpu, Lease, Node, ProvidedMachine
from clusters.offers import nodes_of
from clusters.provisioning import node_admin
from tests.clusters.builders import cluster, gpus_wanted, ready_node, taken, workspace
from tests.people import make_operator
from trainhub_launch.machine import GPU_LOST
from trainhub_launch.scheduler.placement import Demand, Placement, Refusal

pytestmark = pytest.mark.django_db


def ask(wanted: Demand, holder: str = "one") -> Placement | Refusal:
    return acquire(cluster(), wanted, holder=holder, attempt=1, label=f"run {holder}", workspace=workspace())


def refused(wanted: Demand) -> Refusal:
    answer = ask(wanted)
    assert isinstance(answer, Refusal), answer
    return answer


class TestDrained:
    def test_a_drained_node_takes_nothing_and_is_named(self) -> None:
        Node.objects.filter(pk=ready_node("alpha", "GPU-a").pk).update(drained_at=timezone.now())
        answer = refused(gpus_wanted(1))
        assert answer.sentence == "Waiting for 1 node with 1 GPU: alpha is drained."
        assert not answer.permanent

    def test_the_others_are_taken(self) -> None:
        Node.objects.filter(pk=ready_node("alpha", "GPU-a").pk).update(drained_at=timezone.now())
        ready_node("beta", "GPU-b")
        assert taken(ask(gpus_wanted(1))) == {"beta": ("GPU-b",)}

    def test_a_drained_cluster_takes_nothing(self) -> None:
        ready_node("alpha", "GPU-a")
        Cluster.objects.update(drained_at=timezone.now())
        assert "alpha belongs to the cluster local, which is drained" in refused(gpus_wanted(1)).sentence

    def test_what_runs_there_keeps_what_it_holds(self) -> None:
        node = ready_node("alpha", "GPU-a")
        before = ask(gpus_wanted(1))
        Node.objects.filter(pk=node.pk).update(drained_at=timezone.now())
        assert ask(gpus_wanted(1)) == before

    def test_one_that_was_drained_since_it_was_chosen_is_not_taken(self) -> None:
        """Draining and placing lock the same row, so one of them is first."""
        node = ready_node("alpha", "GPU-a")
        seen = nodes_of(cluster(), workspace())
        node_admin.drain(node, make_operator())
        answer = acquire(
            cluster(),
            gpus_wanted(1),
            holder="one",
            attempt=1,
            label="run 1",
            workspace=workspace(),
            expected=seen,
        )
        assert isinstance(answer, Refusal)
        assert not Lease.objects.exists()


class TestMonitorOnly:
    def test_is_never_offered(self) -> None:
        Node.objects.filter(pk=ready_node("alpha", "GPU-a").pk).update(monitor_only=True)
        assert nodes_of(cluster(), workspace()) == ()


class TestGpus:
    def test_one_that_fell_off_the_bus_is_not_offered_and_the_sentence_says_so(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        Gpu.objects.filter(pk="GPU-a").update(state=GPU_LOST)
        answer = refused(gpus_wanted(2))
        expected = "alpha has 1 of 2 GPUs free; 1 of 2 GPUs of alpha has fallen off the bus."
        assert answer.sentence == f"Waiting for 1 node with 2 GPUs: {expected}"
        assert not answer.permanent
        assert taken(ask(gpus_wanted(1))) == {"alpha": ("GPU-b",)}

    def test_one_in_mig_mode_is_offered_as_its_parts(self) -> None:
        ready_node("alpha", "GPU-a", "MIG-1", "MIG-2")
        Gpu.objects.filter(pk="GPU-a").update(mig=True)
        Gpu.objects.filter(pk__startswith="MIG").update(parent="GPU-a")
        (offer,) = nodes_of(cluster(), workspace())
        assert (set(offer.gpus), offer.gpus_total) == ({"MIG-1", "MIG-2"}, 2)


class TestGrowing:
    @pytest.fixture(autouse=True)
    def growing(self) -> None:
        cluster()
        Cluster.objects.update(provider="cloud", max_nodes=3, node_gpus=8, node_slots=8)

    def test_what_can_still_come_lets_a_run_wait(self) -> None:
        answer = refused(gpus_wanted(8, nodes=3))
        assert not answer.permanent

    def test_more_nodes_than_it_grows_to_are_refused_for_good(self) -> None:
        answer = refused(gpus_wanted(8, nodes=4))
        assert answer.permanent
        assert answer.sentence.endswith("and the cluster grows to 3 nodes; ask for at most 3 nodes.")

    def test_larger_nodes_than_can_be_made_are_refused_for_good(self) -> None:
        answer = refused(gpus_wanted(16))
        assert answer.permanent
        assert "one that can be added comes nearest with 8 GPUs" in answer.sentence

    def test_while_drained_nothing_comes(self) -> None:
        Cluster.objects.update(drained_at=timezone.now())
        assert nodes_of(cluster(), workspace()) == ()

    def test_a_node_whose_machine_is_not_up_yet_is_not_offered(self) -> None:
        """It may turn out smaller than what was asked for, and be released again."""
        machine = ProvidedMachine.objects.create(cluster=cluster(), name="alpha", state="joining")
        ready_node("alpha", "GPU-a")
        assert all(node.is_coming for node in nodes_of(cluster(), workspace()))
        ProvidedMachine.objects.update(state="up", node=Node.objects.get())
        found = nodes_of(cluster(), workspace())
        assert [node.name for node in found if not node.is_coming] == [machine.name]
        assert sum(node.is_coming for node in found) == 2
