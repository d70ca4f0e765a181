"""What a node's report changes in its rows, and how a node stands."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from clusters import happenings, inventory, journal
from clusters.hearing import Heard, heard
from clusters.models import Gpu, Node
from clusters.states import NodeStatus
from live.publish import publish_on_commit
from live.topics import node_topic
from trainhub_launch.machine import Heartbeat

log = logging.getLogger(__name__)
WRITE_AT_MOST_EVERY = timedelta(seconds=1)
AGENT_ID = 32


def apply(node: Node, beat: Heartbeat | None, at: datetime, *, agent: str = "", clock_moved_s: float = 0.0) -> float:
    """Take a report's heartbeat; returns the seconds of silence that it ends, 0 for none. Raises WireError for values
    that no machine has.

    While nothing but numbers change, rows are written at most once a second: a busy node reports far oftener.
    `agent` is the process that reports; `clock_moved_s` what `clocks.observe` has just learned.
    """
    changed = {} if beat is None else _changed(node, inventory.facts(beat))
    agent = agent[:AGENT_ID].replace("\0", "")
    if agent and agent != node.agent_id:
        changed["agent_id"] = agent
    if clock_moved_s:
        changed["clock_offset_s"] = node.clock_offset_s
    if not changed and node.last_report_at is not None and timedelta(0) <= at - node.last_report_at < WRITE_AT_MOST_EVERY:
        return 0.0
    silence = _silence_before(node, at)
    with transaction.atomic():
        if beat is not None:
            elsewhere = _upsert_gpus(node, inventory.devices(beat), at)
            changed["vitals"] = inventory.vitals(beat, at) | ({"gpus_elsewhere": elsewhere} if elsewhere else {})
        for kind, message in happenings.of(node, beat, changed, silence_s=silence, clock_moved_s=clock_moved_s):
            journal.note(node, kind, message, at)
        changed["last_report_at"] = at
        Node.objects.filter(pk=node.pk).update(**changed)
        publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})
    for name, value in changed.items():
        setattr(node, name, value)
    return silence


def _silence_before(node: Node, at: datetime) -> float:
    """Seconds for which the node has been missed; 0 while it is merely between two reports."""
    patience = timedelta(seconds=settings.NODE_UNREACHABLE_AFTER)
    if node.last_report_at is None or at - node.last_report_at < patience:
        return 0.0
    silence = heard(at).silence(node, at)
    return silence.total_seconds() if silence >= patience else 0.0


def status(node: Node, now: datetime, span: Heard | None = None) -> NodeStatus:
    """How the node stands. Whoever asks for many nodes passes `hearing.heard(now)` once."""
    if node.revoked_at is not None:
        return NodeStatus.REVOKED
    if node.last_report_at is None:
        return NodeStatus.NEW
    silence = silence_s(node, now, span)
    if silence >= settings.NODE_LOST_AFTER:
        return NodeStatus.LOST
    return NodeStatus.UNREACHABLE if silence >= settings.NODE_UNREACHABLE_AFTER else NodeStatus.READY


def silence_s(node: Node, now: datetime, span: Heard | None = None) -> float:
    """Seconds of silence, counted from the later of the last report and the hub's start."""
    return (span or heard(now)).silence(node, now).total_seconds()


def _changed(node: Node, told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if getattr(node, name) != value}


def _upsert_gpus(node: Node, told: dict[str, dict[str, Any]], at: datetime) -> list[str]:
    """Returns the UUIDs that another living node reports as its own; a device has one owner at a time."""
    # One query, and none that writes, while nothing changes: two hundred nodes tell this at every report.
    known = {gpu.uuid: gpu for gpu in Gpu.objects.filter(Q(uuid__in=told) | Q(node=node, present=True))}
    elsewhere = []
    for uuid, fields in told.items():
        gpu = known.get(uuid)
        if gpu is None:
            Gpu.objects.create(uuid=uuid, node=node, **fields)
        elif gpu.node_id != node.pk and gpu.present and status(gpu.node, at) in (NodeStatus.READY, NodeStatus.UNREACHABLE):
            elsewhere.append(uuid)
        elif gpu.node_id != node.pk or not gpu.present or any(getattr(gpu, name) != value for name, value in fields.items()):
            Gpu.objects.filter(pk=uuid).update(node=node, present=True, **fields)
    gone = [uuid for uuid in known if uuid not in told]
    if gone:
        Gpu.objects.filter(pk__in=gone).update(present=False)
    if elsewhere and elsewhere != node.vitals.get("gpus_elsewhere"):
        log.warning("Node %s reports GPUs that belong to another node: %s", node.name, ", ".join(elsewhere))
    return elsewhere
