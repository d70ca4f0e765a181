"""What the nodes of a cluster are, apart from the leases on them: read for each placement, or reused for a
moment.

Hundreds of nodes are read and turned into values at once, which is most of what a placement would cost. So
what was read a moment ago serves the next placements, too, where the caller allows that. It may be out of
date then: whoever takes resources of a node compares it with what holds now, under the cluster's lock
(`leases.acquire`), and reads everything again if it differs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from django.db.models import F, QuerySet
from django.utils import timezone

from clusters.alerts.unhealthy_gpus import faults_of
from clusters.models import Cluster, Gpu, Node
from clusters.node_reports.inventory import interpreters_of
from clusters.provisioning.states import LEAVING, STARTING
from clusters.windows import node_windows
from trainhub_launch.machine import CGROUP, DISK, GPU_LOST, SECRETS
from trainhub_launch.scheduler.capacity import FreeNode, NodeWindow
from trainhub_launch.scheduler.data_room import DataRoom
from workspaces import process_caches
from workspaces.database.compiled_queries import compiled


class OfferedGpu(NamedTuple):
    """What placement needs of a GPU: the fields of the model with these names."""

    uuid: str
    node_id: int
    state: str
    parent: str


GpuRow = tuple[str, int, str, str]


@dataclass(frozen=True)
class OfferedNode:
    """A node, and what it would offer if it reported and nobody held anything there. `gpus`: the UUIDs of
    those that work, in the order in which they are given to runs."""

    node: Node
    idle: FreeNode
    gpus: tuple[str, ...]


@dataclass(frozen=True)
class ClusterFacts:
    """The nodes of a cluster. `faults`: what is wrong with unhealthy GPUs, by their UUIDs."""

    nodes: tuple[OfferedNode, ...]
    faults: Mapping[str, str]
    read_at: float = field(default_factory=time.monotonic)

    @cached_property
    def _node_of_gpu(self) -> dict[str, int]:
        return {uuid: item.node.pk for item in self.nodes for uuid in item.gpus}

    def nodes_with(self, gpus: Iterable[str]) -> set[int]:
        """Returns the ids of those nodes of the cluster that have one of these GPUs."""
        return {self._node_of_gpu[uuid] for uuid in gpus if uuid in self._node_of_gpu}


# What serves several placements is at most so old.
REUSED_FOR_S = 2.0
_recent: dict[int, ClusterFacts] = {}
process_caches.register(_recent.clear)


def read_facts(cluster: Cluster, names: Collection[str] | None = None) -> ClusterFacts:
    """Returns what holds now. `names`: only of these nodes. At most four queries."""
    # Before the queries, so that the facts never look younger than they are.
    read_at = time.monotonic()
    nodes, gpus = _rows(cluster, names)
    devices: dict[int, list[GpuRow]] = defaultdict(list)
    rows = list(gpus)
    for row in rows:
        devices[row[1]].append(row)
    # Thousands of GPUs are looked at one by one only if an alert fires.
    faults = faults_of(OfferedGpu(*row) for row in rows) if cluster.avoid_unhealthy_gpus else {}
    windows = node_windows.windows_of(cluster, timezone.now())
    facts = tuple(_facts(node, devices[node.pk], faults, windows.get(node.pk, ())) for node in nodes)
    return ClusterFacts(facts, faults, read_at)


def recent_facts(cluster: Cluster, max_age_s: float) -> ClusterFacts:
    """Returns what this process has read at most `max_age_s` ago, or reads it: always with an age of 0."""
    facts = _recent.get(cluster.pk)
    if facts is None or time.monotonic() - facts.read_at >= max_age_s:
        facts = _recent[cluster.pk] = read_facts(cluster)
    return facts


def nodes_by_name(names: Iterable[str]) -> dict[str, Node]:
    return {node.name: node for name in names for node in _named(name)}


@compiled
def _named(name: str) -> QuerySet[Node]:
    return Node.objects.filter(name=name).defer("vitals", "interpreters")


def _rows(cluster: Cluster, names: Collection[str] | None) -> tuple[Iterable[Node], Iterable[GpuRow]]:
    """Returns the nodes of the cluster, or those named, with their present GPUs. A GPU in MIG mode is offered
    as its MIG devices."""
    if not cluster.provider:
        if names is None:
            return _all_nodes(cluster.pk), _all_gpus(cluster.pk)
        if len(names) == 1:
            # Most runs need one node.
            (name,) = names
            return _one_node(cluster.pk, name), _gpus_of_one(cluster.pk, name)
    candidates = _candidates(cluster.pk)
    if cluster.provider:
        # Whether such a node has the requested size is unknown until its machine is up.
        starting = cluster.machines.filter(state__in=STARTING)
        candidates = candidates.exclude(name__in=starting.values("name"))
    if names is not None:
        candidates = candidates.filter(name__in=names)
    return _nodes_of(candidates), _gpus_of(candidates)


def _candidates(cluster_id: int) -> QuerySet[Node]:
    nodes = Node.objects.filter(cluster_id=cluster_id, revoked_at=None, monitor_only=False)
    return nodes.exclude(machine__state__in=LEAVING)


def _nodes_of(candidates: QuerySet[Node]) -> QuerySet[Node]:
    # The vitals of a node are large, and placement needs one of them.
    return candidates.defer("vitals").annotate(disk_free=F("vitals__disk_free_bytes")).order_by("name")


def _gpus_of(candidates: QuerySet[Node]) -> QuerySet[Gpu, GpuRow]:
    # Tuples instead of model instances, because there are thousands.
    rows = Gpu.objects.filter(node__in=candidates.values("pk"), present=True, mig=False)
    return rows.values_list(*OfferedGpu._fields)


@compiled
def _all_nodes(cluster_id: int) -> QuerySet[Node]:
    return _nodes_of(_candidates(cluster_id))


@compiled
def _all_gpus(cluster_id: int) -> QuerySet[Gpu, GpuRow]:
    return _gpus_of(_candidates(cluster_id))


@compiled
def _one_node(cluster_id: int, name: str) -> QuerySet[Node]:
    return _nodes_of(_candidates(cluster_id).filter(name=name))


@compiled
def _gpus_of_one(cluster_id: int, name: str) -> QuerySet[Gpu, GpuRow]:
    return _gpus_of(_candidates(cluster_id).filter(name=name))


def _facts(
    node: Node, gpus: list[GpuRow], faults: Mapping[str, str], windows: tuple[NodeWindow, ...]
) -> OfferedNode:
    working = tuple(uuid for uuid, _, state, _ in gpus if state != GPU_LOST)
    capabilities = frozenset(node.capabilities.split())
    idle = FreeNode(
        name=node.name,
        address=node.address,
        gpus=tuple(uuid for uuid in working if uuid not in faults),
        gpus_total=len(gpus),
        gpus_lost=len(gpus) - len(working),
        gpus_unhealthy=sum(uuid in faults for uuid in working),
        faults=tuple(faults[uuid] for uuid in working if uuid in faults),
        slots=node.slots,
        slots_total=node.slots,
        cores=node.cores,
        interface=node.interface,
        infiniband=node.infiniband,
        mpi=bool(node.mpi),
        mpi_version=node.mpi,
        hostname=node.hostname,
        interpreters=interpreters_of(node),
        memory=node.memory_bytes,
        memory_total=node.memory_bytes,
        cpus=float(node.cores),
        has_limits=CGROUP in capabilities,
        keeps_secrets=SECRETS in capabilities,
        limits_disk=DISK in capabilities,
        capabilities=capabilities,
        disk_free=node.disk_free,  # type: ignore[attr-defined]  # annotated
        windows=windows,
        data=DataRoom(node.data_cache_bytes or None, frozenset(node.data_lists), frozenset()),
    )
    return OfferedNode(node, idle, working)
