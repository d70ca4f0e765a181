"""What is read once about the nodes of a cluster serves several placements, but not for long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters import leases, node_facts, offers
from clusters.models import Cluster, Lease, Node
from tests.jobs.builders import node
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import Placement
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db
AGE_S = 5.0


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(node_facts, "time", clock)
    # The age of facts is read from the clock when they are made.
    node_facts._recent.clear()
    yield clock
    node_facts._recent.clear()


def _names(cluster: Cluster, max_age_s: float = AGE_S) -> list[str]:
    return [item.name for item in offers.offers(cluster, max_age_s=max_age_s)]


def test_nodes_are_read_again_when_what_is_known_is_too_old(clock: Clock) -> None:
    cluster = node("alpha").cluster
    assert _names(cluster) == ["alpha"]
    node("beta")
    clock.now += AGE_S - 0.1
    assert _names(cluster) == ["alpha"]
    assert _names(cluster, max_age_s=1.0) == ["alpha", "beta"]
    # That reading serves others, too.
    assert _names(cluster) == ["alpha", "beta"]


def test_without_an_age_nodes_are_always_read(clock: Clock) -> None:
    cluster = node("alpha").cluster
    assert _names(cluster) == ["alpha"]
    node("beta")
    assert _names(cluster, max_age_s=0.0) == ["alpha", "beta"]
    clock.now += AGE_S
    Node.objects.filter(name="alpha").update(revoked_at=timezone.now())
    assert _names(cluster) == ["beta"]


def test_clusters_do_not_share_what_is_read() -> None:
    first, second = node("alpha").cluster, node("beta", cluster="other").cluster
    assert (_names(first), _names(second)) == (["alpha"], ["beta"])


def test_leases_are_read_each_time(clock: Clock) -> None:
    alpha = node("alpha", gpus=4)
    (idle,) = offers.offers(alpha.cluster, max_age_s=AGE_S)
    workspace = Workspace.objects.create(slug="w", name="w")
    assert isinstance(_acquire(alpha.cluster, workspace, "first", (idle,)), Placement)
    with CaptureQueriesContext(connection) as queries:
        (rest,) = offers.offers(alpha.cluster, max_age_s=AGE_S)
    assert rest == replace(idle, gpus=idle.gpus[1:])
    # When the hub listens, and the leases.
    assert len(queries) == 2
    leases.release("first", 1)
    assert offers.offers(alpha.cluster, max_age_s=AGE_S) == (idle,)


def test_a_gpu_that_was_moved_is_not_offered_by_its_new_node(clock: Clock) -> None:
    alpha, beta = node("alpha", gpus=2), node("beta", gpus=1)
    Lease.objects.create(node=alpha, holder="run", attempt=1, label="run 1", gpus=["GPU-beta-0"])
    offered = {item.name: item.gpus for item in offers.offers(beta.cluster)}
    assert offered == {"alpha": ("GPU-alpha-0", "GPU-alpha-1"), "beta": ()}


def test_whoever_takes_a_node_sees_what_it_is_now(clock: Clock) -> None:
    alpha = node("alpha", gpus=4)
    expected = offers.offers(alpha.cluster, max_age_s=AGE_S)
    Node.objects.filter(pk=alpha.pk).update(drained_at=timezone.now())
    assert offers.offers(alpha.cluster, max_age_s=AGE_S) == expected
    workspace = Workspace.objects.create(slug="w", name="w")
    assert not isinstance(_acquire(alpha.cluster, workspace, "run", expected), Placement)


def _acquire(cluster: Cluster, workspace: Workspace, holder: str, expected: tuple[FreeNode, ...]) -> object:
    return leases.acquire(
        cluster,
        Demand(1, 1, 0),
        holder=holder,
        attempt=1,
        label=holder,
        workspace=workspace,
        expected=expected,
    )
