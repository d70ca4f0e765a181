from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from clusters.leases import acquire, release
from clusters.models import Gpu, Hearing, Lease, Node
from clusters.offers import nodes_of
from tests.clusters.builders import cluster, gpus_wanted, ready_node, slots_wanted, taken, workspace
from trainhub_launch.scheduler.placement import Demand, Placement, Refusal

pytestmark = pytest.mark.django_db


def take(wanted: Demand, holder: str = "one", attempt: int = 1, slug: str = "vision") -> Placement | Refusal:
    with transaction.atomic():
        return acquire(
            cluster(),
            wanted,
            holder=holder,
            attempt=attempt,
            label=f"run {holder}",
            workspace=workspace(slug),
        )


def refused(answer: Placement | Refusal) -> Refusal:
    assert isinstance(answer, Refusal), answer
    return answer


def silence(node: Node, seconds: float) -> None:
    """As if the node had last reported so long ago, in a hub that runs much longer."""
    Node.objects.filter(pk=node.pk).update(last_report_at=timezone.now() - timedelta(seconds=seconds))


class TestNodesOf:
    def test_offers_what_is_free_of_what_there_is(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        take(gpus_wanted(1))
        (offer,) = nodes_of(cluster(), workspace())
        assert (offer.gpus, offer.gpus_total, offer.slots, offer.slots_total) == (("GPU-b",), 2, 32, 32)

    def test_a_gpu_that_is_gone_is_not_offered(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        Gpu.objects.filter(pk="GPU-a").update(present=False)
        (offer,) = nodes_of(cluster(), workspace())
        assert (offer.gpus, offer.gpus_total) == (("GPU-b",), 1)

    def test_a_cluster_of_other_workspaces_offers_nothing(self) -> None:
        ready_node("alpha")
        cluster().workspaces.add(workspace("speech"))
        assert nodes_of(cluster(), workspace("vision")) == ()
        assert len(nodes_of(cluster(), workspace("speech"))) == 1


class TestAcquire:
    def test_takes_gpus_by_uuid(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        assert taken(take(gpus_wanted(2))) == {"alpha": ("GPU-a", "GPU-b")}
        assert Lease.objects.get().gpus == ["GPU-a", "GPU-b"]

    def test_two_runs_never_share_a_gpu(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        assert taken(take(gpus_wanted(1), "one")) == {"alpha": ("GPU-a",)}
        assert taken(take(gpus_wanted(1), "two")) == {"alpha": ("GPU-b",)}

    def test_slots_run_out_too(self) -> None:
        ready_node("alpha", slots=4)
        taken(take(slots_wanted(3), "one"))
        assert not refused(take(slots_wanted(2), "two")).permanent

    def test_asked_again_answers_the_same(self) -> None:
        ready_node("alpha", "GPU-a")
        ready_node("beta", "GPU-b")
        assert take(gpus_wanted(1, nodes=2)) == take(gpus_wanted(1, nodes=2))
        assert Lease.objects.count() == 2

    def test_an_attempt_that_let_go_can_be_placed_anew(self) -> None:
        ready_node("alpha", "GPU-a")
        take(gpus_wanted(1))
        release("one", 1)
        assert taken(take(gpus_wanted(1))) == {"alpha": ("GPU-a",)}

    def test_a_waiting_run_is_told_who_is_in_the_way(self) -> None:
        ready_node("alpha", "GPU-a")
        take(gpus_wanted(1), "41")
        sentence = "Waiting for 1 node with 1 GPU: alpha has 0 of 1 GPU free; it is held by run 41."
        assert refused(take(gpus_wanted(1), "42")).sentence == sentence

    def test_the_runs_of_other_workspaces_stay_unnamed(self) -> None:
        ready_node("alpha", "GPU-a")
        take(gpus_wanted(1), "41", slug="speech")
        sentence = refused(take(gpus_wanted(1), "42")).sentence
        assert "another workspace" in sentence
        assert "41" not in sentence

    def test_more_than_any_node_has_is_refused_for_good(self) -> None:
        ready_node("alpha", "GPU-a")
        refusal = refused(take(gpus_wanted(9)))
        assert refusal.permanent
        assert refusal.field == "resources.gpus_per_node"
        assert "alpha comes nearest with 1 GPU: ask for at most 1 GPU per node" in refusal.sentence

    def test_a_workspace_that_may_not_use_the_cluster_is_refused_for_good(self) -> None:
        ready_node("alpha")
        cluster().workspaces.add(workspace("speech"))
        assert refused(take(slots_wanted(1))).permanent

    def test_one_workspace_may_use_a_cluster_that_lists_several(self) -> None:
        ready_node("alpha")
        cluster().workspaces.add(workspace("speech"), workspace("vision"))
        assert taken(take(slots_wanted(1))) == {"alpha": ()}


class TestSilentNodes:
    @pytest.fixture(autouse=True)
    def _old_hub(self) -> None:
        now = timezone.now()
        Hearing.objects.create(pk=1, since=now - timedelta(days=1), until=now + timedelta(days=1))

    def test_a_node_that_went_silent_gets_no_new_run(self) -> None:
        silence(ready_node("alpha"), 30)
        refusal = refused(take(slots_wanted(1)))
        assert not refusal.permanent
        assert "alpha" in refusal.sentence

    def test_a_run_that_only_the_silent_node_can_hold_waits_for_it(self) -> None:
        ready_node("alpha", "GPU-a")
        silence(ready_node("beta", "GPU-b", "GPU-c"), 30)
        refusal = refused(take(gpus_wanted(2)))
        assert not refusal.permanent
        assert refusal.sentence == "Waiting for 1 node with 2 GPUs: beta has not reported for 30 s."


class TestRelease:
    def test_frees_every_node_of_the_attempt_and_no_other(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        take(gpus_wanted(1), "one")
        take(gpus_wanted(1), "two")
        assert release("one", 1) == 1
        assert [lease.holder for lease in Lease.objects.filter(released_at=None)] == ["two"]

    def test_can_free_one_node_and_keep_the_rest_in_quarantine(self) -> None:
        alpha = ready_node("alpha", "GPU-a")
        ready_node("beta", "GPU-b")
        take(gpus_wanted(1, nodes=2))
        assert release("one", 1, alpha) == 1
        assert [lease.node.name for lease in Lease.objects.filter(released_at=None)] == ["beta"]

    def test_releasing_twice_changes_nothing(self) -> None:
        ready_node("alpha")
        take(slots_wanted(1))
        assert (release("one", 1), release("one", 1)) == (1, 0)


@pytest.mark.django_db(transaction=True)
class TestAtTheSameTime:
    def test_of_many_runs_that_want_the_last_gpu_one_wins(self) -> None:
        ready_node("alpha", "GPU-a")
        workspace()
        answers: list[Placement | Refusal] = []

        def attempt(holder: str) -> None:
            try:
                answers.append(take(gpus_wanted(1), holder))
            finally:
                connection.close()

        threads = [threading.Thread(target=attempt, args=(f"run{n}",)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        assert sum(isinstance(answer, Placement) for answer in answers) == 1
        assert len(answers) == 6
