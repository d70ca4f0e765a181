"""What the nodes of a cluster offer: free GPUs and process slots, and who holds the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from django.db.models import F, QuerySet
from django.utils import timezone

from clusters.alerts.unhealthy_gpus import faults_of
from clusters.models import Cluster, Gpu, Lease, Node, ProvidedMachine
from clusters.node_reports.heartbeat import silence_s, status
from clusters.node_reports.hub_uptime import listening_window
from clusters.node_reports.inventory import interpreters_of
from clusters.provisioning.states import LEAVING, STARTING
from clusters.states import NodeStatus
from clusters.visibility import may_use
from clusters.windows import node_windows
from trainhub_launch.machine import CGROUP, DISK, GPU_LOST, SECRETS
from trainhub_launch.scheduler.capacity import FreeNode, Hold
from trainhub_launch.scheduler.data_room import DataRoom
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
    candidates = _candidates(cluster, names)
    # The vitals of a node are large, and placement needs one of them.
    rows = candidates.defer("vitals").annotate(disk_free=F("vitals__disk_free_bytes")).order_by("name")
    nodes = [(node, status(node, now, uptime)) for node in rows]
    present = [(node, node_status) for node, node_status in nodes if node_status in PRESENT]
    devices = _devices_of(candidates)
    faults = (
        faults_of([gpu for gpus in devices.values() for gpu in gpus]) if cluster.avoid_unhealthy_gpus else {}
    )
    windows = node_windows.windows_of(cluster, now)
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
            disk_free=node.disk_free,
            windows=windows.get(node.pk, ()),
        )
        for node, node_status in present
    )
    return (
        offered
        if names is not None
        else offered + nodes_to_come(cluster, present=[node for node, _ in present])
    )


def _candidates(cluster: Cluster, names: Collection[str] | None) -> QuerySet[Node]:
    nodes = cluster.nodes.filter(revoked_at=None, monitor_only=False).exclude(machine__state__in=LEAVING)
    if cluster.provider:
        # Whether such a node has the requested size is unknown until its machine is up.
        nodes = nodes.exclude(name__in=cluster.machines.filter(state__in=STARTING).values("name"))
    return nodes if names is None else nodes.filter(name__in=names)


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
        memory=max(0, node.memory_bytes - sum(lease.memory_bytes for lease in leases)),
        memory_total=node.memory_bytes,
        cpus=max(0.0, node.cores - sum(lease.cpus for lease in leases)),
        has_limits=CGROUP in node.capabilities.split(),
        keeps_secrets=SECRETS in node.capabilities.split(),
        limits_disk=DISK in node.capabilities.split(),
        capabilities=frozenset(node.capabilities.split()),
        data=DataRoom(
            node.data_cache_bytes or None,
            frozenset(node.data_lists),
            frozenset((key, size) for lease in leases for key, size in lease.data),
        ),
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
