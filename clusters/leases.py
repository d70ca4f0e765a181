"""Who holds which GPUs and process slots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace

from django.db import transaction
from django.utils import timezone

from clusters.models import Cluster, Gpu, Lease, Node, ProvidedMachine
from clusters.node_reports.heartbeat import silence_s, status
from clusters.node_reports.hub_uptime import listening_window
from clusters.node_reports.inventory import interpreters_of
from clusters.provisioning.states import LEAVING, STARTING
from clusters.states import NodeStatus
from clusters.visibility import may_use
from live.publish import publish_on_commit
from live.topics import node_topic
from trainhub_launch.machine import GPU_LOST
from trainhub_launch.offers import Demand, FreeNode, Hold
from trainhub_launch.placement import PlacedNode, Placement, place
from trainhub_launch.refusals import Refusal
from workspaces.models import Workspace

AttemptKey = tuple[str, int]
"""Holder and attempt."""
OTHER_WORKSPACE = "another workspace"
DRAINED = "is drained"
PRESENT = {NodeStatus.READY, NodeStatus.UNREACHABLE, NodeStatus.LOST}


def nodes_of(cluster: Cluster, workspace: Workspace, over: Collection[AttemptKey] = ()) -> tuple[FreeNode, ...]:
    """Every node that has ever reported, with what is free on each and who holds the rest, as `workspace` may
    know it; none where it may not use the cluster. `over`: the attempts that have ended."""
    return offers(cluster, workspace, over) if may_use(cluster, workspace) else ()


def offers(
    cluster: Cluster,
    viewer: Workspace | None = None,
    over: Collection[AttemptKey] = (),
    names: Collection[str] | None = None,
) -> tuple[FreeNode, ...]:
    """The same for the hub itself; holders are named only to a `viewer`. `names`: of these nodes alone, and
    none that the cluster's provider could still make."""
    now = timezone.now()
    span = listening_window(now)
    chosen = cluster.nodes.filter(revoked_at=None, monitor_only=False).exclude(machine__state__in=LEAVING)
    if cluster.provider:
        # Whether such a node is what was asked for is not known before its machine is up.
        chosen = chosen.exclude(name__in=cluster.machines.filter(state__in=STARTING).values("name"))
    if names is not None:
        chosen = chosen.filter(name__in=names)
    nodes = [(node, status(node, now, span)) for node in chosen.defer("vitals").order_by("name")]
    present = [(node, how) for node, how in nodes if how in PRESENT]
    devices: dict[int, list[Gpu]] = defaultdict(list)
    # A GPU in MIG mode is its MIG devices.
    for gpu in Gpu.objects.filter(node__in=chosen.values("pk"), present=True, mig=False).only(
        "uuid", "node_id", "state"
    ):
        devices[gpu.node_id].append(gpu)
    leases: dict[int, list[Lease]] = defaultdict(list)
    taken: set[str] = set()
    for lease in Lease.objects.filter(released_at=None).order_by("pk"):
        leases[lease.node_id].append(lease)
        # A GPU counts as taken wherever its lease was made.
        taken.update(lease.gpus)
    there = tuple(
        replace(
            _offer(node, devices[node.pk], leases[node.pk], taken),
            is_lost=how is NodeStatus.LOST,
            silent_s=None if how is NodeStatus.READY else silence_s(node, now, span),
            holds=() if viewer is None else _holds(leases[node.pk], viewer, over),
            closed=_closed(cluster, node),
        )
        for node, how in present
    )
    return there if names is not None else there + nodes_to_come(cluster, present=[node for node, _ in present])


def nodes_to_come(cluster: Cluster, present: Collection[Node]) -> tuple[FreeNode, ...]:
    """What the cluster's provider can still add to the nodes that are `present`, as nodes without a name of
    their own."""
    if not cluster.provider or cluster.drained_at is not None:
        return ()
    made = ProvidedMachine.objects.filter(cluster=cluster, node__in=[node.pk for node in present]).count()
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
        for number in range(1, cluster.max_nodes - made + 1)
    )


def forbidden(cluster: Cluster, workspace: Workspace) -> Refusal | None:
    if may_use(cluster, workspace):
        return None
    sentence = f"This workspace may not use the cluster {cluster.name!r}; choose another one."
    return Refusal(sentence, "resources.cluster", permanent=True)


def acquire(
    cluster: Cluster,
    wanted: Demand,
    *,
    holder: str,
    attempt: int,
    label: str,
    workspace: Workspace,
    seen: tuple[FreeNode, ...] | None = None,
) -> Placement | Refusal:
    """Take what `wanted` asks for, all of it or nothing, or say why not. Asked again for the same attempt,
    answers the same.

    `seen`: the nodes that were chosen for it, as they were then; they are taken only if none offers less by
    now. Call inside a transaction: the cluster's row (on SQLite the whole database) is locked until it ends.
    """
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    refusal = forbidden(cluster, workspace)
    if refusal is not None:
        return refusal
    held = _placement_of(holder, attempt)
    if held is not None:
        return held
    names = None if seen is None else [node.name for node in seen]
    nodes = offers(cluster, workspace, names=names)
    if seen is not None and not _still(seen, nodes):
        return Refusal(
            "Somebody else was quicker; the queue is looked at again.", "resources.cluster", permanent=False
        )
    chosen = place(wanted, nodes)
    if isinstance(chosen, Placement):
        _take(chosen, holder, attempt, label, workspace)
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


def _take(chosen: Placement, holder: str, attempt: int, label: str, workspace: Workspace) -> None:
    nodes = {
        node.name: node for node in Node.objects.filter(name__in=[placed.name for placed in chosen.nodes])
    }
    # An attempt that was placed, let go and is placed anew may come to the same node again.
    Lease.objects.filter(holder=holder, attempt=attempt).exclude(released_at=None).delete()
    Lease.objects.bulk_create(
        Lease(
            node=nodes[placed.name],
            holder=holder,
            attempt=attempt,
            label=label,
            workspace=workspace,
            gpus=list(placed.gpus),
            slots=placed.slots,
        )
        for placed in chosen.nodes
    )
    _announce(nodes.values())


def _still(seen: tuple[FreeNode, ...], nodes: tuple[FreeNode, ...]) -> bool:
    """Whether each node still offers what it did. Less than that, and a run in front may need what is
    left."""
    now = {node.name: node for node in nodes if node.takes_runs}
    return all(
        before.name in now
        and set(before.gpus) <= set(now[before.name].gpus)
        and before.slots <= now[before.name].slots
        for before in seen
    )


def _closed(cluster: Cluster, node: Node) -> str:
    if node.drained_at is not None:
        return DRAINED
    return "" if cluster.drained_at is None else f"belongs to the cluster {cluster.name}, which is drained"


def _offer(node: Node, gpus: list[Gpu], leases: list[Lease], taken: set[str]) -> FreeNode:
    able = [gpu.uuid for gpu in gpus if gpu.state != GPU_LOST]
    return FreeNode(
        name=node.name,
        address=node.address,
        gpus=tuple(uuid for uuid in able if uuid not in taken),
        gpus_total=len(gpus),
        gpus_lost=len(gpus) - len(able),
        slots=max(0, node.slots - sum(lease.slots for lease in leases)),
        slots_total=node.slots,
        cores=node.cores,
        interface=node.interface,
        infiniband=node.infiniband,
        mpi=bool(node.mpi),
        mpi_version=node.mpi,
        hostname=node.hostname,
        interpreters=interpreters_of(node),
    )


def _holds(leases: list[Lease], viewer: Workspace, over: Collection[AttemptKey]) -> tuple[Hold, ...]:
    return tuple(
        Hold(
            lease.label if lease.workspace_id == viewer.pk else OTHER_WORKSPACE,
            len(lease.gpus),
            lease.slots,
            is_over=(lease.holder, lease.attempt) in over,
        )
        for lease in leases
    )


def _placement_of(holder: str, attempt: int) -> Placement | None:
    leases = list(
        Lease.objects.filter(holder=holder, attempt=attempt, released_at=None)
        .select_related("node")
        .order_by("pk")
    )
    if not leases:
        return None
    return Placement(
        tuple(
            PlacedNode(
                name=lease.node.name,
                address=lease.node.address,
                gpus=tuple(lease.gpus),
                slots=lease.slots,
                cores=lease.node.cores,
                interface=lease.node.interface,
                infiniband=lease.node.infiniband,
            )
            for lease in leases
        )
    )


def _announce(nodes: Iterable[Node]) -> None:
    for node in nodes:
        publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})
