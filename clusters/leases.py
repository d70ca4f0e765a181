"""Who holds which GPUs and process slots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from django.db import transaction
from django.utils import timezone

from clusters.hearing import heard
from clusters.heartbeat import status
from clusters.models import Cluster, Lease, Node
from clusters.states import NodeStatus
from clusters.visibility import may_use
from live.publish import publish_on_commit
from live.topics import node_topic
from trainhub_launch.placement import Demand, FreeNode, PlacedNode, Placement, Refusal, place
from workspaces.models import Workspace


@dataclass
class Held:
    """What the leases of one node take."""

    gpus: set[str] = field(default_factory=set)
    slots: int = 0


def nodes_of(cluster: Cluster, workspace: Workspace) -> tuple[FreeNode, ...]:
    """The ready nodes with what is free on each; none for a workspace that may not use the cluster."""
    return _offers(cluster, {NodeStatus.READY}) if may_use(cluster, workspace) else ()


def acquire(
    cluster: Cluster, wanted: Demand, *, holder: str, attempt: int, label: str, workspace: Workspace
) -> Placement | Refusal:
    """Take what `wanted` asks for, or say why not. Asked again for the same attempt, answers the same placement.

    Call inside a transaction: the cluster's row (on SQLite the whole database) is locked until it ends.
    """
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    if not may_use(cluster, workspace):
        sentence = f"This workspace may not use the cluster {cluster.name!r}; choose another one."
        return Refusal(sentence, "resources.cluster", permanent=True)
    held = _placement_of(holder, attempt)
    if held is not None:
        return held
    free = _offers(cluster, {NodeStatus.READY})
    chosen = place(wanted, free)
    if isinstance(chosen, Refusal):
        return _explained(cluster, wanted, chosen, free, workspace)
    nodes = {node.name: node for node in Node.objects.filter(name__in=[placed.name for placed in chosen.nodes])}
    # An attempt that was placed, let go and is placed anew may come to the same node again.
    Lease.objects.filter(holder=holder, attempt=attempt).exclude(released_at=None).delete()
    for placed in chosen.nodes:
        Lease.objects.create(
            node=nodes[placed.name], holder=holder, attempt=attempt, label=label, workspace=workspace,
            gpus=list(placed.gpus), slots=placed.slots,
        )
    _announce(nodes.values())
    return chosen


def release(holder: str, attempt: int, node: Node | None = None) -> int:
    """Let go what the attempt holds, on one node or on all; how many leases ended."""
    leases = Lease.objects.filter(holder=holder, attempt=attempt, released_at=None)
    if node is not None:
        leases = leases.filter(node=node)
    with transaction.atomic():
        nodes = [lease.node for lease in leases.select_related("node")]
        count = leases.update(released_at=timezone.now())
        _announce(nodes)
    return count


def held_by_node(nodes: Iterable[Node]) -> dict[int, Held]:
    """Node id -> what is taken there. A GPU counts as taken wherever its lease was made."""
    out: dict[int, Held] = defaultdict(Held)
    gpus = set()
    for lease in Lease.objects.filter(released_at=None):
        gpus.update(lease.gpus)
        out[lease.node_id].slots += lease.slots
    for node in nodes:
        out[node.pk].gpus = gpus & {gpu.uuid for gpu in node.gpus.all()}
    return out


def _offers(cluster: Cluster, wanted: set[NodeStatus]) -> tuple[FreeNode, ...]:
    now = timezone.now()
    span = heard(now)
    nodes = [
        node for node in cluster.nodes.filter(revoked_at=None).order_by("name").prefetch_related("gpus")
        if status(node, now, span) in wanted
    ]
    held = held_by_node(nodes)
    return tuple(_offer(node, held[node.pk]) for node in nodes)


def _offer(node: Node, held: Held) -> FreeNode:
    gpus = [gpu.uuid for gpu in node.gpus.all() if gpu.present]
    return FreeNode(
        name=node.name, address=node.address, gpus=tuple(uuid for uuid in gpus if uuid not in held.gpus), gpus_total=len(gpus),
        slots=max(0, node.slots - held.slots), slots_total=node.slots, cores=node.cores, interface=node.interface,
        infiniband=node.infiniband, mpi=bool(node.mpi),
    )


def _placement_of(holder: str, attempt: int) -> Placement | None:
    leases = list(Lease.objects.filter(holder=holder, attempt=attempt, released_at=None).select_related("node").order_by("pk"))
    if not leases:
        return None
    return Placement(
        tuple(
            PlacedNode(
                name=lease.node.name, address=lease.node.address, gpus=tuple(lease.gpus), slots=lease.slots,
                cores=lease.node.cores, interface=lease.node.interface, infiniband=lease.node.infiniband,
            )
            for lease in leases
        )
    )


def _explained(cluster: Cluster, wanted: Demand, refusal: Refusal, free: tuple[FreeNode, ...], workspace: Workspace) -> Refusal:
    """The refusal with who is in the way, and not permanent where a silent node could come back and satisfy it."""
    if free and not refusal.permanent:
        who = _holders([node.name for node in free], workspace)
        return replace(refusal, sentence=f"{refusal.sentence} Held by {who}." if who else refusal.sentence)
    silent = _offers(cluster, {NodeStatus.UNREACHABLE, NodeStatus.LOST})
    idle = tuple(replace(node, slots=node.slots_total, gpus=("",) * node.gpus_total) for node in (*free, *silent))
    if not silent or isinstance(place(wanted, idle), Refusal):
        return refusal
    names = ", ".join(node.name for node in silent)
    return replace(refusal, sentence=f"{refusal.sentence} Not heard from at present: {names}.", permanent=False)


def _holders(names: list[str], workspace: Workspace) -> str:
    leases = Lease.objects.filter(node__name__in=names, released_at=None).order_by("pk")
    labels = [lease.label if lease.workspace_id == workspace.pk else "another workspace" for lease in leases]
    return ", ".join(dict.fromkeys(labels))


def _announce(nodes: Iterable[Node]) -> None:
    for node in nodes:
        publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})
