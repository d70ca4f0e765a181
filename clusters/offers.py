"""What the nodes of a cluster offer: free GPUs and process slots, and who holds the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from clusters.models import Cluster, Lease, Node, ProvidedMachine
from clusters.node_facts import OfferedNode, read_facts, recent_facts
from clusters.node_reports.heartbeat import silence_s, status
from clusters.node_reports.hub_uptime import listening_window
from clusters.states import NodeStatus
from clusters.visibility import may_use
from trainhub_launch.scheduler.capacity import FreeNode, Hold
from workspaces.database.compiled_queries import compiled
from workspaces.models import Workspace

# Holder (a run's id) and attempt.
AttemptKey = tuple[str, int]
OTHER_WORKSPACE = "another workspace"
DRAINED = "is drained"
# Lost nodes are offered too, so that a waiting run learns why it waits; none of them gets runs.
PRESENT = {NodeStatus.READY, NodeStatus.UNREACHABLE, NodeStatus.LOST}


class OpenLease(NamedTuple):
    """What placement needs of a lease: the fields of the model with these names."""

    node_id: int
    holder: str
    attempt: int
    workspace_id: int | None
    label: str
    gpus: list[str]
    slots: int
    memory_bytes: int
    cpus: float
    data: list[tuple[str, int]]


def nodes_of(
    cluster: Cluster,
    workspace: Workspace,
    over: Collection[AttemptKey] = (),
    max_age_s: float = 0.0,
) -> tuple[FreeNode, ...]:
    """Returns the nodes of the cluster with their free resources and the holders of the rest, or nothing if
    the workspace may not use the cluster. `over`: the attempts that have ended. `max_age_s`: see `offers`."""
    return offers(cluster, workspace, over, max_age_s=max_age_s) if may_use(cluster, workspace) else ()


def offers(
    cluster: Cluster,
    viewer: Workspace | None = None,
    over: Collection[AttemptKey] = (),
    names: Collection[str] | None = None,
    max_age_s: float = 0.0,
) -> tuple[FreeNode, ...]:
    """Returns what the nodes of the cluster offer; holders are named only for a `viewer`. `names`: only these
    nodes, without nodes that the cluster's provider could still create. `max_age_s`: what the nodes are,
    apart from the leases on them, may have been read so long ago (see `node_facts`)."""
    now = timezone.now()
    uptime = listening_window(now)
    facts = read_facts(cluster, names) if names is not None else recent_facts(cluster, max_age_s)
    leases: dict[int, list[OpenLease]] = defaultdict(list)
    for lease in map(OpenLease._make, _open_leases()):
        leases[lease.node_id].append(lease)
    # A GPU that was moved counts as leased on its new node as well.
    leased_gpus = {uuid for of_node in leases.values() for lease in of_node for uuid in lease.gpus}
    in_use = facts.nodes_with(leased_gpus) | leases.keys()
    offered, present = [], []
    for item in facts.nodes:
        node_status = status(item.node, now, uptime)
        if node_status not in PRESENT:
            continue
        present.append(item.node)
        closed = _closed(cluster, item.node)
        if node_status is NodeStatus.READY and item.node.pk not in in_use and not closed:
            # What most nodes of a large cluster come to.
            offered.append(item.idle)
            continue
        of_node = leases.get(item.node.pk, [])
        offer = _offer(
            item,
            of_node,
            leased_gpus,
            facts.faults,
            is_lost=node_status is NodeStatus.LOST,
            silent_s=None if node_status is NodeStatus.READY else silence_s(item.node, now, uptime),
            holds=() if viewer is None else _holds(of_node, viewer, over),
            closed=closed,
        )
        offered.append(offer)
    if names is not None:
        return tuple(offered)
    return (*offered, *nodes_to_come(cluster, present))


@compiled
def _open_leases() -> QuerySet[Lease, tuple[Any, ...]]:
    return Lease.objects.filter(released_at=None).order_by("pk").values_list(*OpenLease._fields)


def nodes_to_come(cluster: Cluster, present: Collection[Node]) -> tuple[FreeNode, ...]:
    """Returns placeholders for the nodes that the cluster's provider can still add to those `present`."""
    if not cluster.provider or cluster.drained_at is not None:
        return ()
    machine_count = ProvidedMachine.objects.filter(
        cluster=cluster, node__in=[node.pk for node in present]
    ).count()
    return tuple(
        FreeNode(
            name=f"<new node {number}>",
            address=f"<address of new node {number}>",
            gpus=(),
            gpus_total=cluster.node_gpus,
            slots=0,
            slots_total=cluster.node_slots,
            cores=cluster.node_slots or 1,
            interface="<interface>",
            is_coming=True,
        )
        for number in range(1, cluster.max_nodes - machine_count + 1)
    )


def _closed(cluster: Cluster, node: Node) -> str:
    if node.drained_at is not None:
        return DRAINED
    return "" if cluster.drained_at is None else f"belongs to the cluster {cluster.name}, which is drained"


def _offer(
    item: OfferedNode,
    leases: Sequence[OpenLease],
    leased_gpus: Set[str],
    faults: Mapping[str, str],
    **availability: Any,
) -> FreeNode:
    """Returns what the node offers; `availability`: the fields of FreeNode that tell whether it takes
    runs."""
    node, fields = item.node, availability
    if leases or not leased_gpus.isdisjoint(item.gpus):
        free = [uuid for uuid in item.gpus if uuid not in leased_gpus]
        in_use = frozenset((key, size) for lease in leases for key, size in lease.data)
        fields = {
            **availability,
            "gpus": tuple(uuid for uuid in free if uuid not in faults),
            "faults": tuple(faults[uuid] for uuid in free if uuid in faults),
            "slots": max(0, node.slots - sum(lease.slots for lease in leases)),
            "memory": max(0, node.memory_bytes - sum(lease.memory_bytes for lease in leases)),
            "cpus": max(0.0, node.cores - sum(lease.cpus for lease in leases)),
            "data": replace(item.idle.data, in_use=in_use),
        }
    return replace(item.idle, **fields)


def _holds(leases: Sequence[OpenLease], viewer: Workspace, over: Collection[AttemptKey]) -> tuple[Hold, ...]:
    return tuple(
        Hold(
            lease.label if lease.workspace_id == viewer.pk else OTHER_WORKSPACE,
            len(lease.gpus),
            lease.slots,
            is_over=(lease.holder, lease.attempt) in over,
        )
        for lease in leases
    )
