"""Applies a node's heartbeat to its rows, and derives the status of a node from its silence."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction

from clusters import journal
from clusters.models import Node
from clusters.node_reports import gpu_sync, heartbeat_writer, inventory, node_events
from clusters.node_reports.hub_uptime import ListeningWindow, cached_window, listening_window
from clusters.states import NodeStatus
from clusters.task_messages import send_task_soon
from live.publish import publish_on_commit
from live.topics import node_topic
from trainhub_launch.machine import Heartbeat
from workspaces import background_loop
from workspaces.task_names import TaskName

MIN_WRITE_INTERVAL = timedelta(seconds=1)
MAX_AGENT_ID_LENGTH = 32


def apply(
    node: Node, beat: Heartbeat | None, at: datetime, *, agent: str = "", clock_moved_s: float = 0.0
) -> float:
    """Applies a report's heartbeat. Returns the seconds of silence that it ends, 0 for none. Raises WireError
    for impossible values.

    While only numbers change, rows are written at most once a second, because busy nodes report more often.
    `agent` identifies the reporting process; `clock_moved_s` is the result of `NodeClock.observe`.
    """
    if apply_numbers(node, beat, at, agent=agent, clock_moved_s=clock_moved_s):
        return 0.0
    changed = _changed_fields(node, beat, agent, clock_moved_s)
    silence_before = _silence_s(node, at)
    with transaction.atomic():
        if beat is not None:
            gpus = inventory.devices(beat) or (
                gpu_sync.unreachable_gpus(node, beat.nvml) if beat.nvml else {}
            )
            elsewhere = (
                []
                if gpu_sync.are_stored(node, gpus)
                else gpu_sync.store(node, gpus, partial(_is_alive, at=at))
            )
            changed["vitals"] = inventory.vitals(beat, at) | (
                {"gpus_elsewhere": elsewhere} if elsewhere else {}
            )
        for kind, message in node_events.detect(
            node, beat, changed, silence_s=silence_before, clock_moved_s=clock_moved_s
        ):
            journal.record_event(node, kind, message, at)
        changed["last_report_at"] = at
        Node.objects.filter(pk=node.pk).update(**changed)
        publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})
        if "agent_id" in changed:
            # A run may wait for just this node.
            send_task_soon(TaskName.LAUNCH_QUEUED)
    # Only after the transaction: if it fails, the caller's object still equals the row, and the agent's next
    # report makes the same changes.
    for name, value in changed.items():
        setattr(node, name, value)
    return silence_before


def apply_numbers(
    node: Node,
    beat: Heartbeat | None,
    at: datetime,
    *,
    agent: str = "",
    clock_moved_s: float = 0.0,
    has_runs: bool = True,
) -> bool:
    """Applies a heartbeat in which only numbers changed, without a query while the background loop runs.
    Returns False, having changed nothing, for a heartbeat that changes more.

    `has_runs`: runs on the node are affected by its return from silence.
    """
    if node.last_report_at is None or _changed_fields(node, beat, agent, clock_moved_s):
        return False
    if not background_loop.is_running():
        # Numbers that follow within a second are dropped here; the next heartbeat brings newer ones.
        return timedelta(0) <= at - node.last_report_at < MIN_WRITE_INTERVAL
    silence_s = _cached_silence_s(node, at)
    if silence_s is None or (silence_s and has_runs):
        return False
    vitals = None
    if beat is not None:
        if not gpu_sync.are_stored(node, inventory.devices(beat)):
            return False
        vitals = inventory.vitals(beat, at)
        # A journal entry needs a transaction, so the slow path takes this heartbeat.
        if any(node_events.detect(node, beat, {"vitals": vitals}, silence_s=0.0, clock_moved_s=0.0)):
            return False
        node.vitals = vitals
    node.last_report_at = at
    heartbeat_writer.record(
        node, at, vitals, returned=node_events.return_sentence(silence_s) if silence_s else ""
    )
    return True


def _cached_silence_s(node: Node, at: datetime) -> float | None:
    """Returns the seconds for which the node was unreachable, 0 between two regular reports, without a query;
    None when the listening window is not cached."""
    patience = timedelta(seconds=settings.NODE_UNREACHABLE_AFTER)
    if node.last_report_at is not None and at - node.last_report_at < patience:
        return 0.0
    window = cached_window()
    if window is None:
        return None
    silence = window.silence(node, at)
    return silence.total_seconds() if silence >= patience else 0.0


def _changed_fields(
    node: Node, beat: Heartbeat | None, agent: str, clock_moved_s: float
) -> dict[str, object]:
    """Returns the fields of the node that a report changes, without its numbers."""
    changed = (
        {}
        if beat is None
        else {name: value for name, value in inventory.facts(beat).items() if getattr(node, name) != value}
    )
    # The agent chooses this text: cut to the column, and without NUL, which PostgreSQL refuses.
    agent = agent[:MAX_AGENT_ID_LENGTH].replace("\0", "")
    if agent and agent != node.agent_id:
        changed["agent_id"] = agent
    if clock_moved_s:
        changed["clock_offset_s"] = node.clock_offset_s
    return changed


def _is_alive(node: Node, at: datetime) -> bool:
    return status(node, at) in (NodeStatus.READY, NodeStatus.UNREACHABLE)


def _silence_s(node: Node, at: datetime) -> float:
    """Returns the seconds for which the node was unreachable, 0 between two regular reports. Takes a query
    unless the last report is recent."""
    patience = timedelta(seconds=settings.NODE_UNREACHABLE_AFTER)
    if node.last_report_at is None or at - node.last_report_at < patience:
        return 0.0
    silence = listening_window(at).silence(node, at)
    return silence.total_seconds() if silence >= patience else 0.0


def status(node: Node, now: datetime, span: ListeningWindow | None = None) -> NodeStatus:
    """Returns the node's status. Callers with many nodes query `hub_uptime.listening_window(now)` once and
    pass it as `span`."""
    if node.revoked_at is not None:
        return NodeStatus.REVOKED
    if node.last_report_at is None:
        return NodeStatus.NEW
    silence = silence_s(node, now, span)
    if silence >= settings.NODE_LOST_AFTER:
        return NodeStatus.LOST
    return NodeStatus.UNREACHABLE if silence >= settings.NODE_UNREACHABLE_AFTER else NodeStatus.READY


def silence_s(node: Node, now: datetime, span: ListeningWindow | None = None) -> float:
    """Returns the seconds of silence since the last report or the hub's start, whichever is later."""
    return (span or listening_window(now)).silence(node, now).total_seconds()
