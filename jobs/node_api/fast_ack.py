"""The answer to a report that brings nothing but numbers, from what this process knows: no query, no thread,
no waiting.

Thousands of such come each second. Whatever is more than that goes the long way (`jobs.node_api.reports`),
which finds out by itself."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime

from django.conf import settings

from clusters.models import Node
from clusters.node_reports import clocks, heartbeat
from clusters.telemetry import intake, live_samples
from jobs.logs import late_log_bytes
from jobs.node_api import node_assignments
from jobs.node_api.node_assignments import Holding, Key
from trainhub_launch.report import Ack, Report
from workspaces import background_loop

LIVELY_S, IDLE_S = 1.0, 5.0
PUNCTUAL, PUNCTUAL_WATCHED = 0.97, 0.7
"""Of the time to its next report, what a node lets pass if nothing happens. One that reports sooner was
woken, and is answered by what is so now. While somebody looks, reports follow the samples."""

_lock = threading.Lock()
_expected: dict[int, tuple[float, float]] = {}


def at_once(node: Node, report: Report, now: datetime) -> Ack | None:
    """Raises WireError as `reports.ingest` does; None where this way will not do."""
    if (
        report.logs
        or report.events
        or report.heartbeat is None
        or not background_loop.is_running()
        or not _is_punctual(node, report)
    ):
        return None
    held = node_assignments.of_late(node.pk)
    if held is None or not _is_quiet(report, held):
        return None
    before_s = node.clock_offset_s
    if clocks.observe(node, report.sent_at, now):
        # To be journaled: the long way observes it again.
        node.clock_offset_s = before_s
        return None
    late_log_bytes.hear(node, report, held, now)
    if not heartbeat.apply_numbers(node, report.heartbeat, now, agent=report.agent, has_runs=bool(held)):
        return None
    return answer(node, report, Ack(interval_s=pace(node, held)), now)


def answer(node: Node, report: Report, ack: Ack, now: datetime) -> Ack:
    """`ack` with what becomes of the report's numbers and events."""
    buckets_until, events_until = intake.take(node, report, now)
    return Ack(
        ack.offsets,
        ack.start,
        ack.stop,
        ack.settled,
        ack.daemons,
        ack.interval_s,
        buckets_until,
        events_until,
        live_samples.is_wanted(node.pk),
    )


def pace(node: Node, held: Mapping[Key, Holding]) -> float:
    """Seconds to the node's next report when nothing happens."""
    lively = bool(held) or live_samples.is_wanted(node.pk)
    # However little patience the hub has, a node that lives is heard twice within it.
    return min(LIVELY_S if lively else IDLE_S, settings.NODE_UNREACHABLE_AFTER / 2)


def expect(node: Node, report: Report, ack: Ack) -> None:
    """Remember what the node was told: when it reports without being woken."""
    if report.heartbeat is not None:
        share = PUNCTUAL_WATCHED if ack.is_watched else PUNCTUAL
        with _lock:
            _expected[node.pk] = report.sent_at, ack.interval_s * share


def restart() -> None:
    """Remember nothing, as a process does that has just begun."""
    with _lock:
        _expected.clear()
    intake.restart()


def _is_punctual(node: Node, report: Report) -> bool:
    sent_at, pause_s = _expected.get(node.pk, (0.0, 0.0))
    return report.sent_at - sent_at >= pause_s


def _is_quiet(report: Report, held: Mapping[Key, Holding]) -> bool:
    """Whether the node holds what it should, and nothing is to be done with any of it."""
    told = {(fact.run, fact.attempt): fact for fact in report.attempts}
    if held.keys() != told.keys() | set(report.living):
        return False
    return not any(
        holding.claimed_at is None
        or holding.phase == "done"
        or holding.to_start
        or holding.daemon_wanted
        or holding.stop() is not None
        for holding in held.values()
    )
