"""Leases of GPUs and process slots: what nodes offer, and how attempts acquire and release it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from clusters.alerts.unhealthy_gpus import faults_of
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
from trainhub_launch.scheduler.capacity import Demand, FreeNode, Hold
from trainhub_launch.scheduler.placement import PlacedNode, Placement, place
from trainhub_launch.scheduler.rejections import Refusal
from workspaces.models import Workspace

# Holder (a run's id) and attempt.
AttemptKey = tuple[str, int]
OTHER_WORKSPACE = "another workspace"
DRAINED = "is drained"
# Lost nodes are offered too, so that a waiting run learns why it waits; none of them gets runs.
PRESENT = {NodeStatus.READY, NodeStatus.UNREACHABLE, NodeStatus.LOST}


class OfferedGpu(NamedTuple):
    """What placement needs of a GPU: the fields of the model with these names."""

    uuid: str
    node_id: int
    state: str
    parent: str


def nodes_of(
    cluster: Cluster, workspace: Workspace, over: Collection[AttemptKey] = ()
) -> tuple[FreeNode, ...]:
    """Returns the nodes of the cluster with their free resources and the holders of the rest, or nothing if
    the workspace may not use the cluster. `over`: the attempts that have ended."""
    return offers(cluster, workspace, over) if may_use(cluster, workspace) else ()


def offers(
    cluster: Cluster,
    viewer: Workspace | None = None,
    over: Collection[AttemptKey] = (),
    names: Collection[str] | None = None,
) -> tuple[FreeNode, ...]:
    """Returns what the nodes of the cluster offer; holders are named only for a `viewer`. `names`: only these
    nodes, without nodes that the cluster's provider could still create."""
    now = timezone.now()
    uptime = listening_window(now)
    candidates = cluster.nodes.filter(revoked_at=None, monitor_only=False).exclude(machine__state__in=LEAVING)
    if cluster.provider:
        # Whether such a node has the requested size is unknown until its machine is up.
        candidates = candidates.exclude(name__in=cluster.machines.filter(state__in=STARTING).values("name"))
    if names is not None:
        candidates = candidates.filter(name__in=names)
    # The vitals of a node are large, and placement needs none of them.
    nodes = [(node, status(node, now, uptime)) for node in candidates.defer("vitals").order_by("name")]
    present = [(node, node_status) for node, node_status in nodes if node_status in PRESENT]
    devices = _devices_of(candidates)
    faults = (
        faults_of([gpu for gpus in devices.values() for gpu in gpus]) if cluster.avoid_unhealthy_gpus else {}
    )
    leases: dict[int, list[Lease]] = defaultdict(list)
    leased_gpus: set[str] = set()
    for lease in Lease.objects.filter(released_at=None).order_by("pk"):
        leases[lease.node_id].append(lease)
        # A GPU that was moved counts as leased on its new node as well.
        leased_gpus.update(lease.gpus)
    offered = tuple(
        _offer(
            node,
            devices[node.pk],
            leases[node.pk],
            leased_gpus,
            faults,
            is_lost=node_status is NodeStatus.LOST,
            silent_s=None if node_status is NodeStatus.READY else silence_s(node, now, uptime),
            holds=() if viewer is None else _holds(leases[node.pk], viewer, over),
            closed=_closed(cluster, node),
        )
        for node, node_status in present
    )
    return (
        offered
        if names is not None
        else offered + nodes_to_come(cluster, present=[node for node, _ in present])
    )


def _devices_of(nodes: QuerySet[Node]) -> dict[int, list[OfferedGpu]]:
    """Returns the present GPUs by their node; a GPU in MIG mode is offered as its MIG devices."""
    devices: dict[int, list[OfferedGpu]] = defaultdict(list)
    # Tuples instead of model instances, because every submission of a run reads all GPUs of its cluster.
    rows = Gpu.objects.filter(node__in=nodes.values("pk"), present=True, mig=False)
    for gpu in map(OfferedGpu._make, rows.values_list(*OfferedGpu._fields)):
        devices[gpu.node_id].append(gpu)
    return devices


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


def forbidden(cluster: Cluster, workspace: Workspace) -> Refusal | None:
    if may_use(cluster, workspace):
        return None
    sentence = f"This workspace may not use the cluster {cluster.name!r}; choose another one."
    return Refusal(sentence, "resources.cluster", permanent=True)


def acquire(
    cluster: Cluster,
    demand: Demand,
    *,
    holder: str,
    attempt: int,
    label: str,
    workspace: Workspace,
    expected: tuple[FreeNode, ...] | None = None,
) -> Placement | Refusal:
    """Leases all that `demand` requires and returns the placement, or returns the reason why not. A repeated
    call for the same attempt returns the same placement.

    `expected`: the nodes that were chosen for it, as they were then; they are leased only if none offers less
    now. Call inside a transaction: the cluster's row (on SQLite the whole database) is locked until it ends.
    """
    # The lock comes before every read: of two placements that run at once, the second sees the leases of the
    # first.
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    refusal = forbidden(cluster, workspace)
    if refusal is not None:
        return refusal
    existing = _placement_of(holder, attempt)
    if existing is not None:
        return existing
    names = None if expected is None else [node.name for node in expected]
    nodes = offers(cluster, workspace, names=names)
    if expected is not None and not still_offer(expected, nodes):
        return Refusal(
            "Another run was placed first; the queue is checked again.", "resources.cluster", permanent=False
        )
    chosen = place(demand, nodes)
    if isinstance(chosen, Placement):
        _take(chosen, holder, attempt, label, workspace)
    return chosen


def release(holder: str, attempt: int, node: Node | None = None) -> int:
    """Releases the leases of the attempt, on one node or on all. Returns the number of ended leases."""
    leases = Lease.objects.filter(holder=holder, attempt=attempt, released_at=None)
    if node is not None:
        leases = leases.filter(node=node)
    with transaction.atomic():
        # Read first: after the update the filter on open leases matches none of them.
        nodes = [lease.node for lease in leases.select_related("node")]
        count = leases.update(released_at=timezone.now())
        _announce(nodes)
    return count


def _take(placement: Placement, holder: str, attempt: int, label: str, workspace: Workspace) -> None:
    nodes = {
        node.name: node
        for node in Node.objects.filter(name__in=[node_part.name for node_part in placement.nodes])
    }
    # An attempt that was placed before may be placed on the same node again.
    Lease.objects.filter(holder=holder, attempt=attempt).exclude(released_at=None).delete()
    Lease.objects.bulk_create(
        Lease(
            node=nodes[node_part.name],
            holder=holder,
            attempt=attempt,
            label=label,
            workspace=workspace,
            gpus=list(node_part.gpus),
            slots=node_part.slots,
        )
        for node_part in placement.nodes
    )
    _announce(nodes.values())


def still_offer(expected: tuple[FreeNode, ...], nodes: tuple[FreeNode, ...]) -> bool:
    """Returns whether each of the `expected` nodes still offers at least what it did then. If not, a run in
    front of the queue may need the rest."""
    now = {node.name: node for node in nodes if node.takes_runs}
    return all(
        before.name in now
        and set(before.gpus) <= set(now[before.name].gpus)
        and before.slots <= now[before.name].slots
        for before in expected
    )


def _closed(cluster: Cluster, node: Node) -> str:
    if node.drained_at is not None:
        return DRAINED
    return "" if cluster.drained_at is None else f"belongs to the cluster {cluster.name}, which is drained"


def _offer(
    node: Node,
    gpus: list[OfferedGpu],
    leases: list[Lease],
    leased_gpus: set[str],
    faults: Mapping[str, str],
    **availability: Any,
) -> FreeNode:
    """Returns what the node offers; `availability`: the fields of FreeNode that tell whether it takes
    runs."""
    working = [gpu.uuid for gpu in gpus if gpu.state != GPU_LOST]
    free = [uuid for uuid in working if uuid not in leased_gpus]
    return FreeNode(
        name=node.name,
        address=node.address,
        gpus=tuple(uuid for uuid in free if uuid not in faults),
        gpus_total=len(gpus),
        gpus_lost=len(gpus) - len(working),
        gpus_unhealthy=sum(uuid in faults for uuid in working),
        faults=tuple(faults[uuid] for uuid in free if uuid in faults),
        slots=max(0, node.slots - sum(lease.slots for lease in leases)),
        slots_total=node.slots,
        cores=node.cores,
        interface=node.interface,
        infiniband=node.infiniband,
        mpi=bool(node.mpi),
        mpi_version=node.mpi,
        hostname=node.hostname,
        interpreters=interpreters_of(node),
        **availability,
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
