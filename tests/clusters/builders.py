from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from clusters.enrolment.node_tokens import enrol_node
from clusters.models import Cluster, Node
from clusters.node_reports import heartbeat
from trainhub_launch.machine import GpuFact, Heartbeat, Interpreter
from trainhub_launch.scheduler.placement import Demand, Placement
from workspaces.models import Workspace

GIB = 1024**3


def workspace(slug: str = "vision") -> Workspace:
    return Workspace.objects.get_or_create(slug=slug, defaults={"name": slug.title()})[0]


def gpu(uuid: str, index: int = 0, **numbers: Any) -> GpuFact:
    known = {name: value for name, value in numbers.items() if value is not None}
    return GpuFact(uuid=uuid, index=index, name="NVIDIA H200", memory_bytes=140 * GIB, numbers=known)


def beat(*gpus: GpuFact, **changed: Any) -> Heartbeat:
    facts: dict[str, Any] = {
        "agent_version": "1.0",
        "hostname": "box.lan",
        "address": "10.0.0.7",
        "interface": "eth0",
        "cores": 8,
        "slots": 32,
        "memory_bytes": 64 * GIB,
        "memory_used_bytes": 20 * GIB,
        "cpu_pct": 12.5,
        "disk_free_bytes": 900 * GIB,
        "interpreters": (Interpreter("/usr/bin/python3", "3.11.7"),),
    }
    return Heartbeat(gpus=gpus, **{**facts, **changed})


def ready_node(
    name: str = "alpha", *gpus: str, cluster: str = "local", at: datetime | None = None, **changed: Any
) -> Node:
    """A node that has just reported, with GPUs of these UUIDs."""
    node, _ = enrol_node(cluster, name)
    told = beat(*(gpu(uuid, index) for index, uuid in enumerate(gpus)), **changed)
    heartbeat.apply(node, told, at or timezone.now())
    return Node.objects.select_related("cluster").get(pk=node.pk)


def cluster(name: str = "local") -> Cluster:
    return Cluster.objects.get_or_create(name=name)[0]


def gpus_wanted(count: int, nodes: int = 1) -> Demand:
    return Demand(nodes=nodes, gpus=count, slots=0)


def slots_wanted(count: int, nodes: int = 1) -> Demand:
    return Demand(nodes=nodes, gpus=0, slots=count)


def taken(placement: object) -> dict[str, tuple[str, ...]]:
    """Node -> GPUs of a placement; fails on a refusal."""
    assert isinstance(placement, Placement), placement
    return {node.name: node.gpus for node in placement.nodes}
