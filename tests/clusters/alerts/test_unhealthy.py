"""A GPU about which a critical alert fires: where it is shown, and that no run gets it."""

from __future__ import annotations

import pytest
from django.db import transaction

from clusters.alerts.unhealthy_gpus import HEALTH_KINDS, faults_of
from clusters.leases import acquire, release
from clusters.models import Alert, Cluster, Gpu, NodeEvent
from clusters.offers import offers
from clusters.overview import cluster_card, node_cards
from clusters.states import GpuUsage
from tests.clusters.alerts.world import World
from tests.clusters.builders import cluster, gpus_wanted, taken, workspace
from trainhub_launch.scheduler.placement import Placement, Refusal

pytestmark = pytest.mark.django_db
A, B = "GPU-a", "GPU-b"


@pytest.fixture
def world() -> World:
    """The first of two GPUs has reported XID 48."""
    world = World(A, B)
    world.happen("xid", A, 48)
    world.tick()
    return world


def take(count: int, holder: str = "one") -> Placement | Refusal:
    with transaction.atomic():
        return acquire(
            cluster(),
            gpus_wanted(count),
            holder=holder,
            attempt=1,
            label="run 7",
            workspace=workspace(),
        )


def usages(world: World) -> list[GpuUsage]:
    return [cell.usage for cell in node_cards([world.node], None)[0].gpus]


class TestFaults:
    def test_are_those_of_firing_critical_alerts(self, world: World) -> None:
        assert faults_of(Gpu.objects.all()) == {A: "XID 48"}

    def test_warnings_are_none(self) -> None:
        world = World(A)
        world.happen("xid", A, 13)
        world.tick()
        assert faults_of(Gpu.objects.all()) == {}

    def test_several_are_named_once_each(self, world: World) -> None:
        world.happen("xid", A, 48)
        world.happen("xid", A, 79)
        world.happen("ecc", A)
        world.tick()
        assert faults_of(Gpu.objects.all()) == {A: "XID 48, memory errors that were not corrected, XID 79"}

    def test_alerts_about_the_run_on_it_are_none(self) -> None:
        assert "gpu_hang" not in HEALTH_KINDS
        assert {"gpu_xid", "gpu_ecc", "gpu_rows", "gpu_lost"} <= set(HEALTH_KINDS)

    def test_a_mig_device_has_those_of_its_gpu(self, world: World) -> None:
        Gpu.objects.filter(pk=B).update(parent=A)
        assert faults_of(Gpu.objects.all()) == {A: "XID 48", B: "XID 48"}

    def test_an_alert_of_an_earlier_version_is_named_by_its_title(self, world: World) -> None:
        Alert.objects.update(facts={})
        assert faults_of(Gpu.objects.all()) == {A: "XID error"}


class TestPlacement:
    def test_takes_the_healthy_gpu(self, world: World) -> None:
        assert taken(take(1)) == {"alpha": (B,)}

    def test_waits_with_the_fault_as_the_reason(self, world: World) -> None:
        taken(take(1))
        answer = take(1, "two")
        assert isinstance(answer, Refusal)
        assert answer.sentence == (
            "Waiting for 1 node with 1 GPU: alpha has 1 GPU free but unhealthy: XID 48; "
            "the other is held by run 7."
        )

    @pytest.mark.parametrize(("event", "gpu"), [("gpu_back", A), ("restarted", "")])
    def test_takes_it_again_when_the_gpu_or_its_machine_was_restarted(
        self, world: World, event: str, gpu: str
    ) -> None:
        world.happen(event, gpu)
        world.tick(20, times=2)
        assert Alert.objects.get().state == "cleared"
        assert taken(take(2)) == {"alpha": (A, B)}

    def test_a_run_that_holds_it_keeps_it(self) -> None:
        world = World(A, B)
        before = take(2)
        world.happen("xid", A, 48)
        world.tick()
        assert take(2) == before
        assert usages(world)[0] is GpuUsage.UNHEALTHY
        (node,) = offers(cluster())
        assert (node.gpus_unhealthy, node.faults, node.gpus_usable) == (1, (), 1)
        release("one", 1)
        assert offers(cluster())[0].faults == ("XID 48",)

    def test_takes_it_if_the_cluster_is_set_to(self, world: World) -> None:
        Cluster.objects.update(avoid_unhealthy_gpus=False)
        assert taken(take(2)) == {"alpha": (A, B)}

    def test_an_unhealthy_gpu_since_the_choice_refuses_it(self) -> None:
        world = World(A)
        chosen = offers(cluster())
        world.happen("xid", A, 48)
        world.tick()
        with transaction.atomic():
            answer = acquire(
                cluster(),
                gpus_wanted(1),
                holder="one",
                attempt=1,
                label="run 7",
                workspace=workspace(),
                expected=chosen,
            )
        assert isinstance(answer, Refusal)
        assert not answer.permanent


class TestDisplay:
    def test_is_unhealthy_and_not_free(self, world: World) -> None:
        assert usages(world) == [GpuUsage.UNHEALTHY, GpuUsage.FREE]
        card = cluster_card(cluster(), None)
        assert (card.gpus, card.gpus_free, card.gpus_unhealthy, card.gpus_broken) == (2, 1, 1, 1)

    def test_a_lost_one_is_lost(self) -> None:
        world = World(A)
        world.lose(A)
        world.tick()
        assert usages(world) == [GpuUsage.LOST]

    def test_is_healthy_again_after_the_alert(self, world: World) -> None:
        NodeEvent.objects.all().delete()
        world.tick(20, times=2)
        assert usages(world) == [GpuUsage.FREE, GpuUsage.FREE]
