"""The periodic twin of every trigger, and the end of every wait: no run stays where nothing will happen to it."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from clusters import heartbeat
from clusters.hearing import Heard, heard
from clusters.states import NodeStatus
from jobs import launching, lifecycle, logstore
from jobs.ending import end
from jobs.models import AttemptNode, Draft, Run, RunEvent
from jobs.states import Reason, RunState

log = logging.getLogger(__name__)
CANCEL_PATIENCE_S = 30
DRAFTS_KEPT = timedelta(days=30)
UPLOADS_KEPT_S = 86400
CLAIMED = (RunState.PREPARING, RunState.RUNNING, RunState.FINALIZING, RunState.CANCEL_REQUESTED)


def tick(now: datetime | None = None) -> None:
    """Look at everything that waits. One run that makes trouble does not keep the others from being looked at."""
    now = now or timezone.now()
    launching.launch_queued()
    span = heard(now)
    for run in Run.objects.filter(state__in=(RunState.PROVISIONING, *CLAIMED)).order_by("pk"):
        try:
            _look_at(run, now, span)
        except DatabaseError:
            raise
        except Exception:
            log.exception("Run %s could not be looked after; the others go on", run.pk)
    _tidy(now)


def _look_at(run: Run, now: datetime, span: Heard) -> None:
    parts = list(
        AttemptNode.objects.select_related("node").filter(attempt__run=run, attempt__number=run.attempt).order_by("node_rank")
    )
    if run.state == RunState.CANCEL_REQUESTED:
        _overdue_cancel(run, parts, now, span)
        return
    if run.state == RunState.PROVISIONING or any(part.claimed_at is None for part in parts):
        _never_started(run, parts, now)
    for part in parts:
        if part.claimed_at is not None and part.phase != "done":
            _silent(run, part, now, span)


def _never_started(run: Run, parts: list[AttemptNode], now: datetime) -> None:
    waited = (now - run.state_since).total_seconds()
    missing = [part for part in parts if part.claimed_at is None]
    if missing and waited >= settings.NEVER_STARTED_AFTER:
        facts = {"node": missing[0].node.name, "seconds": round(settings.NEVER_STARTED_AFTER)}
        end(run.pk, run.attempt, Reason.NEVER_STARTED, facts)


def _silent(run: Run, part: AttemptNode, now: datetime, span: Heard) -> None:
    """Silence is shown first and ends the attempt later; what may still run there keeps its GPUs."""
    status = heartbeat.status(part.node, now, span)
    if status in (NodeStatus.LOST, NodeStatus.REVOKED):
        facts = {"node": part.node.name, "seconds": round(heartbeat.silence_s(part.node, now, span))}
        end(run.pk, run.attempt, Reason.NODE_LOST, facts)
        logstore.close(run.pk, run.attempt)
    elif status is NodeStatus.UNREACHABLE:
        message = f"Node {part.node.name} does not report; waiting for it up to {settings.NODE_LOST_AFTER:.0f} s."
        since = part.node.last_report_at or run.created_at
        if not RunEvent.objects.filter(run=run, attempt=run.attempt, message=message, at__gt=since).exists():
            lifecycle.note(run.pk, message, attempt=run.attempt)


def _overdue_cancel(run: Run, parts: list[AttemptNode], now: datetime, span: Heard) -> None:
    """A cancel does not wait for a node that is away. That node gets its order to stop when it comes back."""
    patience = timedelta(seconds=int(run.spec["limits"]["grace_s"]) + CANCEL_PATIENCE_S)
    if now - run.state_since < patience:
        return
    away = [
        part.node.name for part in parts
        if part.phase != "done" and heartbeat.status(part.node, now, span) is not NodeStatus.READY
    ]
    if away or not parts:
        message = f"Canceled, though {', '.join(away) or 'no node'} has not answered; its GPUs stay reserved until it does."
        lifecycle.advance(run.pk, RunState.CANCELED, Reason.CANCELED, facts=run.facts, message=message, attempt=run.attempt)
        logstore.close(run.pk, run.attempt)


def _tidy(now: datetime) -> None:
    """What was begun and never finished."""
    Draft.objects.filter(updated_at__lt=now - DRAFTS_KEPT, submitted_run=None).delete()
    folder = Path(settings.DATA_DIR) / "uploads"
    for part in folder.iterdir() if folder.is_dir() else ():
        if part.stat().st_mtime < now.timestamp() - UPLOADS_KEPT_S:
            part.unlink(missing_ok=True)
