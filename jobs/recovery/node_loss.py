"""Handles nodes that are silent for too long or revoked: ends their attempts, or queues the runs again.

A silent node is first shown as `Unreachable`; later its attempts end. The node's lease stays until the node
itself confirms that the attempt's processes are gone. The attempt's other nodes stop at once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils import timezone

from clusters.models import Node
from clusters.node_reports import heartbeat, silence
from clusters.node_reports.hub_uptime import ListeningWindow, listening_window
from clusters.states import NodeStatus
from jobs import lifecycle, outcomes
from jobs.attempts import run_transitions
from jobs.attempts.attempt_end import end_attempt
from jobs.logs import log_store
from jobs.models import AttemptNode, Member, Run, RunEvent
from jobs.states import MemberState, Reason, RunState
from trainhub_launch.states import Phase

log = logging.getLogger(__name__)
UNFINISHED = (MemberState.WAITING, MemberState.RUNNING, MemberState.STOPPED)
CLAIMED = (RunState.PREPARING, RunState.RUNNING, RunState.FINALIZING)


def check_silent_nodes(now: datetime | None = None) -> None:
    """Checks every silent or revoked node and the runs on it. Called often, because it is cheap.

    Only time makes a node silent, so no event triggers this; it handles revoked nodes as well."""
    now = now or timezone.now()
    last = now - timedelta(seconds=settings.NODE_UNREACHABLE_AFTER)
    away = Node.objects.filter(Q(last_report_at__lte=last) | Q(revoked_at__isnull=False))
    if not away.exists():
        return  # the usual case, at a third of the cost of what follows
    span = listening_window(now)
    silence.record_silent_nodes(now, span)
    parts = AttemptNode.objects.filter(
        node__in=away, settled_at=None, attempt__ended_at=None, claimed_at__isnull=False
    )
    for run in Run.objects.filter(pk__in=parts.values("attempt__run"), state__in=CLAIMED).order_by("pk"):
        try:
            _check_run(run, now, span)
        # Not all nodes and runs are checked, only those that an index finds as silent.
        except DatabaseError:
            raise
        except Exception:
            log.exception("Checking run %s failed; the other runs are not affected", run.pk)


def _check_run(run: Run, now: datetime, span: ListeningWindow) -> None:
    """Ends the run's attempt if one of its nodes is lost; records an event if one is unreachable."""
    rows = list(
        # A database that fails would fail for every run; the task is repeated as a whole.
        AttemptNode.objects.select_related("node__cluster", "attempt")
        .filter(attempt__run=run, attempt__number=run.attempt)
        .order_by("node_rank")
    )
    for part in rows:
        if part.claimed_at is None or part.phase == Phase.DONE:
            continue
        status = heartbeat.status(part.node, now, span)
        if status in (NodeStatus.LOST, NodeStatus.REVOKED):
            _end_lost(run, part, rows, status, heartbeat.silence_s(part.node, now, span))
            return
        if status is NodeStatus.UNREACHABLE:
            _record_silence(run, part)


def settle_removed_nodes(now: datetime) -> None:
    """Settles ended attempts on removed nodes.

    A removed node cannot confirm anything any more: its removal implies that nothing runs there."""
    parts = AttemptNode.objects.filter(
        node__removed_at__isnull=False, settled_at=None, attempt__ended_at__isnull=False
    )
    for part in parts.select_related("node", "attempt"):
        with transaction.atomic():
            lifecycle.settle(part, part.attempt.run_id, part.attempt.number, now)


def write_off(part: AttemptNode) -> None:
    """Marks the unfinished ranks of this part as lost and seals its logs at their present sizes.

    If the node comes back, it sends the rest of its logs."""
    attempt = part.attempt
    here = Member.objects.filter(attempt=attempt, node_id=part.node_id)
    here.filter(state__in=UNFINISHED, ended_at=None).update(state=MemberState.LOST)
    elsewhere = set(
        Member.objects.filter(attempt=attempt)
        .exclude(node_id=part.node_id)
        .values_list("log_name", flat=True)
    )
    stored = log_store.log_sizes(attempt.run_id, attempt.number)
    sizes = {name: size for name, size in stored.items() if name not in elsewhere and _is_log_of(part, name)}
    log_store.seal(
        attempt.run_id, attempt.number, {row.log_name: stored.get(row.log_name, 0) for row in here} | sizes
    )


def _is_log_of(part: AttemptNode, name: str) -> bool:
    """Returns whether a log that belongs to no rank is this node's. See `Assignment.stored_name`."""
    return name.startswith(f"node_{part.node_rank}/") if part.node_rank else not name.startswith("node_")


def _end_lost(
    run: Run, part: AttemptNode, rows: Sequence[AttemptNode], status: NodeStatus, silent_s: float
) -> None:
    reason, facts = _end_reason(run, part, rows, status, silent_s)
    with transaction.atomic():
        # Another worker, or the node's own last report, has ended the attempt meanwhile.
        if not end_attempt(run.pk, run.attempt, reason, facts):
            return
        if status is NodeStatus.LOST and reason not in (Reason.NODE_LOST, Reason.PREEMPTED):
            message = Reason.NODE_LOST.sentence(node=part.node.name, seconds=round(silent_s))
            lifecycle.record_event(run.pk, message, attempt=run.attempt)
        write_off(part)
    if len(rows) == 1:
        # With several nodes, the others still send the rest of their logs.
        log_store.close(run.pk, run.attempt)


def _end_reason(
    run: Run, part: AttemptNode, rows: Sequence[AttemptNode], status: NodeStatus, silent_s: float
) -> tuple[Reason, dict[str, Any]]:
    """Returns the reason for the end of the attempt, and its facts.

    A rank that failed before the node's last report is the reason; one that failed later did so because it
    lost its peers."""
    first = outcomes.first_failure(
        run_transitions.load_parts(part.attempt, rows), run.spec["limits"]["timeout_s"]
    )
    last_report_at = part.node.last_report_at
    if first is not None and (
        first.at is None or (last_report_at is not None and first.at <= last_report_at.timestamp())
    ):
        return first.reason, first.facts
    facts = {"node": part.node.name, "seconds": round(silent_s)}
    # Low-priority machines disappear because their provider takes them back, which is no fault of the run: it
    # starts again without using a retry.
    if part.node.low_priority or part.node.cluster.low_priority:
        return Reason.PREEMPTED, {"node": part.node.name}
    return Reason.NODE_REVOKED if status is NodeStatus.REVOKED else Reason.NODE_LOST, facts


def _record_silence(run: Run, part: AttemptNode) -> None:
    message = f"Node {part.node.name} does not report; waiting for it up to {settings.NODE_LOST_AFTER:.0f} s."
    since = part.node.last_report_at or run.created_at
    if not RunEvent.objects.filter(run=run, attempt=run.attempt, message=message, at__gt=since).exists():
        lifecycle.record_event(run.pk, message, attempt=run.attempt)
