"""The periodic check of all active runs: repeats work whose trigger was lost, and enforces time limits, so
that no run is stuck."""

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from clusters.fair_share import use
from clusters.node_reports import heartbeat
from clusters.node_reports.hub_uptime import ListeningWindow, listening_window
from clusters.states import NodeStatus
from jobs import lifecycle
from jobs.attempts import readiness
from jobs.attempts.attempt_end import end_attempt
from jobs.checkpoints import collecting
from jobs.data_orders import data_lifecycle
from jobs.logs import log_store
from jobs.models import AttemptNode, DataOrder, Draft, EnvironmentBuild, Run
from jobs.node_listings import listing_progress
from jobs.node_orders import order_reaper
from jobs.recovery import node_loss
from jobs.scheduling import run_actions
from jobs.states import Reason, RunKind, RunState
from jobs.version_builds import progress
from trainhub_launch.states import Phase

log = logging.getLogger(__name__)
CANCEL_PATIENCE_S = 30
DRAFT_LIFETIME = timedelta(days=30)
LONG_FIELDS = ("attempt__plan", "node__vitals", "node__interpreters", "node__data_lists")
CLAIMED = (RunState.PREPARING, RunState.RUNNING, RunState.FINALIZING, RunState.CANCEL_REQUESTED)


def check_runs(now: datetime | None = None) -> None:
    """Launches queued runs, and checks all active ones and all builds. An error in one run does not affect
    the others."""
    now = now or timezone.now()
    use.fold(now)
    run_actions.launch_queued()
    span = listening_window(now)
    active = Run.objects.filter(kind=RunKind.JOB, state__in=(RunState.PROVISIONING, *CLAIMED)).order_by("pk")
    parts = _parts_of(active)
    for run in active:
        try:
            _check_run(run, parts.get((run.pk, run.attempt), []), now, span)
        except DatabaseError:
            raise
        except Exception:
            log.exception("Checking run %s failed; the other runs are not affected", run.pk)
    data_lifecycle.end_overdue(now)
    for kind in (EnvironmentBuild, DataOrder):
        order_reaper.check_orders(kind, now, span)
    progress.advance_waiting()
    listing_progress.advance_listings(now)
    collecting.give_up(now)
    node_loss.settle_removed_nodes(now)
    _delete_old_drafts(now)


def _parts_of(runs: QuerySet[Run]) -> dict[tuple[str, int], list[AttemptNode]]:
    """Returns the parts of the runs' present attempts, by run and attempt.

    One query, because this is done every few seconds; few need what is long."""
    rows = AttemptNode.objects.select_related("node", "attempt").defer(*LONG_FIELDS)
    parts = defaultdict(list)
    for part in rows.filter(
        attempt__run__in=[run.pk for run in runs], attempt__number=F("attempt__run__attempt")
    ).order_by("node_rank"):
        parts[part.attempt.run_id, part.attempt.number].append(part)
    return parts


def _check_run(run: Run, parts: list[AttemptNode], now: datetime, span: ListeningWindow) -> None:
    if run.state == RunState.CANCEL_REQUESTED:
        _end_overdue_cancel(run, parts, now, span)
        return
    if any(part.claimed_at is None for part in parts):
        # Some node has not claimed its part; nothing else can be wrong with the run before that.
        _end_unstarted(run, parts, now, span)
    elif len(parts) > 1 and run.state in (RunState.PREPARING, RunState.RUNNING):
        _end_unready(run, parts, now)


def _end_unstarted(run: Run, parts: list[AttemptNode], now: datetime, span: ListeningWindow) -> None:
    # No node can claim anything while the hub does not listen.
    waited = ((span.until or now) - max(run.state_since, span.since)).total_seconds()
    missing = [part for part in parts if part.claimed_at is None]
    if missing and waited >= settings.NEVER_STARTED_AFTER:
        facts = {"node": missing[0].node.name, "seconds": round(settings.NEVER_STARTED_AFTER)}
        end_attempt(run.pk, run.attempt, Reason.NEVER_STARTED, facts)


def _end_unready(run: Run, parts: list[AttemptNode], now: datetime) -> None:
    """Ends a run on several nodes if one takes too long to get ready, or does not start once all are
    ready."""
    patience = timedelta(seconds=settings.NEVER_READY_AFTER)
    for part in parts:
        late = part.claimed_at is not None and now - part.claimed_at >= patience
        if late and part.phase in readiness.BEFORE_READY:
            detail = f"is still {readiness.activity(part)}"
            facts = {"node": part.node.name, "seconds": round(settings.NEVER_READY_AFTER), "detail": detail}
            end_attempt(run.pk, run.attempt, Reason.NEVER_READY, facts)
            return
    # The plan is final only when every node is ready, so this is the moment from which a start is due.
    all_ready_at = max((part.fact.get("phase_at", {}).get(Phase.READY, 0.0) for part in parts), default=0.0)
    idle = [part for part in parts if part.phase == Phase.READY]
    if (
        idle
        and parts[0].attempt.plan is not None
        and now.timestamp() - all_ready_at >= settings.NEVER_STARTED_AFTER
    ):
        facts = {"node": idle[0].node.name, "seconds": round(settings.NEVER_STARTED_AFTER)}
        end_attempt(run.pk, run.attempt, Reason.NEVER_STARTED, facts)


def _end_overdue_cancel(run: Run, parts: list[AttemptNode], now: datetime, span: ListeningWindow) -> None:
    """Completes a cancel without the nodes that do not report; they are told to stop when they come back."""
    patience = timedelta(seconds=int(run.spec["limits"]["grace_s"]) + CANCEL_PATIENCE_S)
    if now - run.state_since < patience:
        return
    away = [
        part
        for part in parts
        if part.phase != Phase.DONE and heartbeat.status(part.node, now, span) is not NodeStatus.READY
    ]
    # Every node that is left reports, so that the cancel ends by their reports.
    if not away and parts:
        return
    names = ", ".join(part.node.name for part in away)
    message = f"Canceled, though {names or 'no node'} has not answered; its GPUs stay reserved until it does."
    with transaction.atomic():
        lifecycle.advance(
            run.pk, RunState.CANCELED, Reason.CANCELED, facts=run.facts, message=message, attempt=run.attempt
        )
        for part in away:
            node_loss.write_off(part)
    if len(away) == len(parts):
        log_store.close(run.pk, run.attempt)


def _delete_old_drafts(now: datetime) -> None:
    """Deletes drafts that were not changed for a month. `trainhub.tasks.sweep_blobs` deletes old uploads."""
    drafts = Draft.objects.filter(updated_at__lt=now - DRAFT_LIFETIME, submitted_run=None)
    # This runs every five seconds, and a deletion of nothing would also lock the database for its writers.
    if drafts.exists():
        drafts.delete()
