"""What happened to a node, for people: append-only, and the same thing not again and again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils import timezone

from clusters.models import Node, NodeEvent

REPEAT_AFTER = timedelta(minutes=10)


def record_event(node: Node, kind: str, message: str, at: datetime) -> None:
    """`kind`: heard, silent, lost, back, restarted, agent, renamed, clock, disk, driver, nvml_lost or
    nvml_back."""
    if not NodeEvent.objects.filter(node=node, kind=kind, message=message, at__gt=at - REPEAT_AFTER).exists():
        add(node, kind, message, at)


def add(node: Node, kind: str, message: str, at: datetime | None = None) -> None:
    """What happens once, and counts each time: `kind` is joined or revoked. `at` None: now."""
    NodeEvent.objects.create(node=node, kind=kind, message=message, at=at or timezone.now())


def record_events(kind: str, told: Mapping[int, tuple[str, datetime]]) -> None:
    """The same for many nodes: node id -> message and moment."""
    if not told:
        return
    since = min(at for _, at in told.values()) - REPEAT_AFTER
    before = set(
        NodeEvent.objects.filter(node__in=told, kind=kind, at__gt=since).values_list("node_id", "message")
    )
    NodeEvent.objects.bulk_create(
        NodeEvent(node_id=node_id, kind=kind, message=message, at=at)
        for node_id, (message, at) in told.items()
        if (node_id, message) not in before
    )


def add_once(
    node: Node, kind: str, message: str, at: datetime, *, key: str, gpu: str = "", code: int = 0
) -> None:
    """What a node may tell again: kept once for each `key`. `kind`: xid (`code`: its number), ecc, gpu_lost,
    gpu_back, nvml_lost or nvml_back; `gpu`: the UUID, where it befell one."""
    event = NodeEvent(node=node, kind=kind, message=message, at=at, gpu=gpu, code=code, key=key)
    NodeEvent.objects.bulk_create([event], ignore_conflicts=True)


def recent_events(node: Node, most: int = 20) -> list[NodeEvent]:
    """The latest first."""
    return list(NodeEvent.objects.filter(node=node).order_by("-pk")[:most])
