"""Clusters and nodes as one workspace sees them: resources, free resources, and holders of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from clusters.agent_upgrades.agent_versions import AgentVersion, agent_of
from clusters.alerts.unhealthy_gpus import faults_of
from clusters.gpus.gpu_cells import GpuCell, GpuDevice, LeaseSummary, lease_summary, share_pct
from clusters.journal import recent_events
from clusters.models import Cluster, Gpu, Lease, Node, NodeEvent
from clusters.node_reports.heartbeat import silence_s, status
from clusters.node_reports.hub_uptime import ListeningWindow, listening_window
from clusters.node_reports.inventory import Vitals
from clusters.node_reports.notices import Notice, notices
from clusters.states import GpuUsage, NodeStatus
from clusters.visibility import clusters_of, visible_nodes
from workspaces.models import Workspace

MAX_FOREMOST = 20


@dataclass(frozen=True)
class NodeCard:
    node: Node
    status: NodeStatus
    silence_s: float
    leases: tuple[LeaseSummary, ...]
    gpus: tuple[GpuCell, ...]
    cpu_pct: float | None
    memory_used_bytes: int | None
    disk_free_bytes: int | None

    @property
    def devices(self) -> tuple[GpuDevice, ...]:
        uuids = {cell.gpu.uuid for cell in self.gpus}
        return tuple(
            GpuDevice(cell, tuple(part for part in self.gpus if part.gpu.parent == cell.gpu.uuid))
            for cell in self.gpus
            # Whole GPUs have no parent. A MIG device whose GPU is not reported is shown as a device of its
            # own.
            if cell.gpu.parent not in uuids
        )

    @property
    def usable_gpus(self) -> tuple[GpuCell, ...]:
        """Returns the devices that runs can get: MIG devices instead of a GPU in MIG mode."""
        return tuple(cell for cell in self.gpus if not cell.gpu.mig)

    @property
    def gpus_busy(self) -> int:
        return sum(cell.lease is not None for cell in self.usable_gpus)

    @property
    def gpus_free(self) -> int:
        return sum(cell.is_free for cell in self.usable_gpus)

    @property
    def gpus_unhealthy(self) -> int:
        return sum(cell.usage is GpuUsage.UNHEALTHY for cell in self.usable_gpus)

    @property
    def slots_busy(self) -> int:
        return sum(lease.slots for lease in self.leases)

    @property
    def slots_free(self) -> int:
        return max(0, self.node.slots - self.slots_busy)

    @property
    def slots_pct(self) -> float | None:
        return share_pct(self.slots_busy, self.node.slots)

    @property
    def memory_pct(self) -> float | None:
        return share_pct(self.memory_used_bytes, self.node.memory_bytes)

    @property
    def needs_attention(self) -> bool:
        """Whether it does not report, or has GPUs that are lost or unhealthy."""
        return self.status in (NodeStatus.UNREACHABLE, NodeStatus.LOST) or any(
            cell.usage in (GpuUsage.LOST, GpuUsage.UNHEALTHY) for cell in self.usable_gpus
        )

    @property
    def agent(self) -> AgentVersion:
        return agent_of(self.node)

    @property
    def notices(self) -> tuple[Notice, ...]:
        return notices(self.node, self.slots_free) if self.status is NodeStatus.READY else ()

    @property
    def events(self) -> list[NodeEvent]:
        return recent_events(self.node)

    @property
    def disputed_gpus(self) -> list[str]:
        """Returns the GPUs that this node reports but another living node owns."""
        return list(self.node.vitals.get("gpus_elsewhere", []))


@dataclass(frozen=True)
class ClusterCard:
    cluster: Cluster
    nodes: tuple[NodeCard, ...]

    @property
    def foremost_nodes(self) -> tuple[NodeCard, ...]:
        """Returns the nodes that a list of all clusters shows."""
        return foremost(self.nodes)

    @property
    def ready(self) -> tuple[NodeCard, ...]:
        return tuple(card for card in self.nodes if card.status is NodeStatus.READY)

    @property
    def gpus(self) -> int:
        return sum(len(card.usable_gpus) for card in self.ready)

    @property
    def gpu_counts(self) -> dict[str, int]:
        """Returns usage -> number of GPUs on ready nodes."""
        return Counter(str(cell.usage) for card in self.ready for cell in card.usable_gpus)

    @property
    def gpus_free(self) -> int:
        return sum(card.gpus_free for card in self.ready)

    @property
    def gpus_unhealthy(self) -> int:
        return sum(card.gpus_unhealthy for card in self.ready)

    @property
    def gpus_broken(self) -> int:
        """Returns how many are unhealthy or lost."""
        return self.gpu_counts.get("unhealthy", 0) + self.gpu_counts.get("lost", 0)

    @property
    def slots(self) -> int:
        return sum(card.node.slots for card in self.ready)

    @property
    def slots_free(self) -> int:
        return sum(card.slots_free for card in self.ready)


def foremost(nodes: tuple[NodeCard, ...]) -> tuple[NodeCard, ...]:
    """Returns those that a page with other things shows: of many only some, first those that need
    attention."""
    if len(nodes) <= MAX_FOREMOST:
        return nodes
    return tuple(sorted(nodes, key=lambda card: not card.needs_attention)[:MAX_FOREMOST])


def cluster_cards(workspace: Workspace) -> tuple[ClusterCard, ...]:
    """Returns the clusters that the workspace may use, with their nodes except revoked ones."""
    cards = node_cards(visible_nodes(workspace).filter(revoked_at=None), workspace)
    return tuple(
        ClusterCard(cluster, tuple(card for card in cards if card.node.cluster_id == cluster.pk))
        for cluster in clusters_of(workspace).select_related("slurm")
    )


def cluster_card(cluster: Cluster, workspace: Workspace | None) -> ClusterCard:
    """Returns one cluster. With `workspace` None, all holders are hidden."""
    nodes = Node.objects.filter(cluster=cluster, revoked_at=None).select_related("cluster").order_by("name")
    return ClusterCard(cluster, node_cards(nodes, workspace))


def node_cards(nodes: Iterable[Node], workspace: Workspace | None) -> tuple[NodeCard, ...]:
    # One query for the leases and one for the GPUs of all nodes: a page shows hundreds.
    nodes = list(nodes)
    now = timezone.now()
    uptime = listening_window(now)
    leases: dict[int, list[Lease]] = {node.pk: [] for node in nodes}
    for lease in Lease.objects.filter(node__in=nodes, released_at=None).order_by("pk"):
        leases[lease.node_id].append(lease)
    devices: dict[int, list[Gpu]] = {node.pk: [] for node in nodes}
    for gpu in Gpu.objects.filter(node__in=nodes, present=True):
        devices[gpu.node_id].append(gpu)
    faults = faults_of([gpu for node_gpus in devices.values() for gpu in node_gpus])
    lines = {
        key: tuple(lease_summary(lease, workspace) for lease in node_leases)
        for key, node_leases in leases.items()
    }
    return tuple(
        _node_card(node, lines[node.pk], _cells(node, lines[node.pk], devices[node.pk], faults), now, uptime)
        for node in nodes
    )


def _node_card(
    node: Node,
    lines: tuple[LeaseSummary, ...],
    cells: tuple[GpuCell, ...],
    now: datetime,
    uptime: ListeningWindow,
) -> NodeCard:
    vitals: Vitals = node.vitals
    return NodeCard(
        node=node,
        status=status(node, now, uptime),
        silence_s=silence_s(node, now, uptime),
        leases=lines,
        gpus=cells,
        cpu_pct=vitals.get("cpu_pct"),
        memory_used_bytes=vitals.get("memory_used_bytes"),
        disk_free_bytes=vitals.get("disk_free_bytes"),
    )


def _cells(
    node: Node, lines: tuple[LeaseSummary, ...], devices: list[Gpu], faults: Mapping[str, str]
) -> tuple[GpuCell, ...]:
    # A GPU has one open lease at most, so a later line never hides an earlier one.
    holders = {uuid: line for line in lines for uuid in line.gpus}
    vitals: Vitals = node.vitals
    return tuple(
        GpuCell(
            gpu=gpu,
            lease=holders.get(gpu.uuid),
            numbers=vitals.get("gpus", {}).get(gpu.uuid, {}),
            counters=vitals.get("counters", {}).get(gpu.uuid, {}),
            is_used=bool(vitals.get("processes", {}).get(gpu.uuid)),
            fault=faults.get(gpu.uuid, ""),
        )
        for gpu in devices
    )
