"""The append-only journal of a node; an equal entry within REPEAT_AFTER is left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils import timezone

from clusters.models import Node, NodeEvent

REPEAT_AFTER = timedelta(minutes=10)
# What pages call the kinds of entries, of nodes and of clusters. Other kinds are words already, as `drained`.
WORDS = {
    "heard": "first report",
    "silent": "no report",
    "back": "reports again",
    "agent": "agent restarted",
    "monitor_only": "monitor only",
    "low_priority": "priority",
    "nvml_lost": "GPUs unreadable",
    "nvml_back": "GPUs readable",
    "xid": "XID error",
    "ecc": "memory error",
    "gpu_lost": "GPU lost",
    "gpu_back": "GPU back",
    "made": "created",
    "grows": "scaling up",
    "grown": "scaled up",
    "shrinks": "scaling down",
    "shrunk": "scaled down",
    "trouble": "error",
}


def record_event(node: Node, kind: str, message: str, at: datetime) -> None:
    """Adds an entry unless there is an equal recent one. `kind`: heard, silent, lost, back, restarted, agent,
    renamed, clock, disk, driver, nvml_lost or nvml_back."""
    if not NodeEvent.objects.filter(node=node, kind=kind, message=message, at__gt=at - REPEAT_AFTER).exists():
        add(node, kind, message, at)


def add(node: Node, kind: str, message: str, at: datetime | None = None) -> None:
    """Adds an entry always, for events such as joined, revoked or drained. `at` None: now."""
    NodeEvent.objects.create(node=node, kind=kind, message=message, at=at or timezone.now())


def record_events(kind: str, events: Mapping[int, tuple[str, datetime]]) -> None:
    """Adds entries of one kind for many nodes, except equal recent ones. `events`: node id -> message and
    time."""
    if not events:
        return
    earliest = min(at for _, at in events.values()) - REPEAT_AFTER
    existing = set(
        NodeEvent.objects.filter(node__in=events, kind=kind, at__gt=earliest).values_list(
            "node_id", "message"
        )
    )
    NodeEvent.objects.bulk_create(
        NodeEvent(node_id=node_id, kind=kind, message=message, at=at)
        for node_id, (message, at) in events.items()
        if (node_id, message) not in existing
    )


def add_once(
    node: Node, kind: str, message: str, at: datetime, *, key: str, gpu: str = "", code: int = 0
) -> None:
    """Adds an entry once for each `key`, for events that a node may send again. `kind`: xid (`code`: its
    number), ecc, gpu_lost, gpu_back, nvml_lost or nvml_back; `gpu`: the UUID for an event of a GPU."""
    event = NodeEvent(node=node, kind=kind, message=message, at=at, gpu=gpu, code=code, key=key)
    # `create` would raise an IntegrityError for a repeated key, and so abort a surrounding transaction.
    NodeEvent.objects.bulk_create([event], ignore_conflicts=True)


def kind_word(kind: str) -> str:
    """Returns what pages call a kind of entry."""
    return WORDS.get(kind, kind.replace("_", " "))


def recent_events(node: Node, limit: int = 20) -> list[NodeEvent]:
    """Returns the latest entries, newest first."""
    return list(NodeEvent.objects.filter(node=node).order_by("-pk")[:limit])
