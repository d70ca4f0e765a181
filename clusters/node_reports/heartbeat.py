"""What a node's report changes in its rows, and how a node stands."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from clusters import journal
from clusters.models import Node
from clusters.node_reports import gpu_sync, heartbeat_writer, inventory, node_events
from clusters.node_reports.hub_uptime import ListeningWindow, listening_window, cached_window
from clusters.states import NodeStatus
from live.publish import publish_on_commit
from live.topics import node_topic
from trainhub_launch.machine import Heartbeat
from workspaces import background_loop

WRITE_AT_MOST_EVERY = timedelta(seconds=1)
AGENT_ID = 32


def apply(
    node: Node, beat: Heartbeat | None, at: datetime, *, agent: str = "", clock_moved_s: float = 0.0
) -> float:
    """Take a report's heartbeat; returns the seconds of silence that it ends, 0 for none. Raises WireError
    for values that no machine has.

    While nothing but numbers change, rows are written at most once a second: a busy node reports far oftener.
    `agent` is the process that reports; `clock_moved_s` what `clocks.observe` has just learned.
    """
    if apply_numbers(node, beat, at, agent=agent, clock_moved_s=clock_moved_s):
        return 0.0
    changed = _news(node, beat, agent, clock_moved_s)
    silence = _silence_before(node, at)
    with transaction.atomic():
        if beat is not None:
            told = inventory.devices(beat) or (gpu_sync.unreachable_gpus(node, beat.nvml) if beat.nvml else {})
            elsewhere = (
                []
                if gpu_sync.are_stored(node, told)
                else gpu_sync.store(node, told, partial(_is_alive, at=at))
            )
            changed["vitals"] = inventory.vitals(beat, at) | (
                {"gpus_elsewhere": elsewhere} if elsewhere else {}
            )
        for kind, message in node_events.detect(
            node, beat, changed, silence_s=silence, clock_moved_s=clock_moved_s
        ):
            journal.note(node, kind, message, at)
        changed["last_report_at"] = at
        Node.objects.filter(pk=node.pk).update(**changed)
        publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})
    for name, value in changed.items():
        setattr(node, name, value)
    return silence


def apply_numbers(
    node: Node,
    beat: Heartbeat | None,
    at: datetime,
    *,
    agent: str = "",
    clock_moved_s: float = 0.0,
    has_runs: bool = True,
) -> bool:
    """The same for a report that tells nothing but numbers, without a query while rounds are going; False
    where it tells more.

    `has_runs`: the node's return from silence concerns runs, too.
    """
    if node.last_report_at is None or _news(node, beat, agent, clock_moved_s):
        return False
    if not background_loop.is_running():
        return timedelta(0) <= at - node.last_report_at < WRITE_AT_MOST_EVERY
    silence_s = _silence_lately(node, at)
    if silence_s is None or (silence_s and has_runs):
        return False
    vitals = None
    if beat is not None:
        if not gpu_sync.are_stored(node, inventory.devices(beat)):
            return False
        vitals = inventory.vitals(beat, at)
        if any(node_events.detect(node, beat, {"vitals": vitals}, silence_s=0.0, clock_moved_s=0.0)):
            return False
        node.vitals = vitals
    node.last_report_at = at
    heartbeat_writer.record(node, at, vitals, returned=node_events.return_sentence(silence_s) if silence_s else "")
    return True


def _silence_lately(node: Node, at: datetime) -> float | None:
    """As `_silence_before`, without asking the database: None where this process does not know."""
    patience = timedelta(seconds=settings.NODE_UNREACHABLE_AFTER)
    if node.last_report_at is not None and at - node.last_report_at < patience:
        return 0.0
    span = cached_window()
    if span is None:
        return None
    silence = span.silence(node, at)
    return silence.total_seconds() if silence >= patience else 0.0


def _news(node: Node, beat: Heartbeat | None, agent: str, clock_moved_s: float) -> dict[str, Any]:
    """The fields of the node that a report changes, beside its numbers."""
    changed = (
        {}
        if beat is None
        else {name: value for name, value in inventory.facts(beat).items() if getattr(node, name) != value}
    )
    agent = agent[:AGENT_ID].replace("\0", "")
    if agent and agent != node.agent_id:
        changed["agent_id"] = agent
    if clock_moved_s:
        changed["clock_offset_s"] = node.clock_offset_s
    return changed


def _is_alive(node: Node, at: datetime) -> bool:
    return status(node, at) in (NodeStatus.READY, NodeStatus.UNREACHABLE)


def _silence_before(node: Node, at: datetime) -> float:
    """Seconds for which the node has been missed; 0 while it is merely between two reports."""
    patience = timedelta(seconds=settings.NODE_UNREACHABLE_AFTER)
    if node.last_report_at is None or at - node.last_report_at < patience:
        return 0.0
    silence = listening_window(at).silence(node, at)
    return silence.total_seconds() if silence >= patience else 0.0


def status(node: Node, now: datetime, span: ListeningWindow | None = None) -> NodeStatus:
    """How the node stands. Whoever asks for many nodes passes `hearing.heard(now)` once."""
    if node.revoked_at is not None:
        return NodeStatus.REVOKED
    if node.last_report_at is None:
        return NodeStatus.NEW
    silence = silence_s(node, now, span)
    if silence >= settings.NODE_LOST_AFTER:
        return NodeStatus.LOST
    return NodeStatus.UNREACHABLE if silence >= settings.NODE_UNREACHABLE_AFTER else NodeStatus.READY


def silence_s(node: Node, now: datetime, span: ListeningWindow | None = None) -> float:
    """Seconds of silence, counted from the later of the last report and the hub's start."""
    return (span or listening_window(now)).silence(node, now).total_seconds()
