"""Follows what clusters with a queue of their own do with the runs: ends attempts that lost their nodes, and
gives back what ended runs still hold there."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.utils import timezone

from clusters.backends.contract import AttemptKey, LostAttempt, OutsideScheduler
from clusters.kinds import BACKENDS
from clusters.models import Cluster
from jobs import lifecycle
from jobs.attempts import run_transitions
from jobs.attempts.attempt_end import end_attempt
from jobs.models import Attempt, AttemptNode, Run
from jobs.states import FINAL, Reason, RunState
from trainhub_launch.states import Phase

IN_PROGRESS = (RunState.PREPARING, RunState.RUNNING, RunState.FINALIZING)
# A node ends by itself once the hub has everything; what takes longer is canceled.
LEAVE_WITHIN = timedelta(seconds=30)


def tend_backends() -> None:
    now = timezone.now()
    for backend in BACKENDS.values():
        if backend.scheduler is not None:
            backend.scheduler.observe(partial(_end, backend.scheduler))
            _give_back(backend.scheduler, now)
    _believe_reports(now)


def _end(scheduler: OutsideScheduler, lost: LostAttempt) -> None:
    reason = Reason.TAKEN_OUTSIDE if lost.may_retry else Reason.ENDED_OUTSIDE
    facts: dict[str, object] = {"detail": lost.sentence}
    if lost.canceled_by:
        reason, facts = Reason.CANCELED, {"who": lost.canceled_by}
    run = Run.objects.filter(pk=lost.holder).exclude(state__in=FINAL).first()
    if run is None:
        return  # its job has ended because the run has
    if run.state == RunState.QUEUED and run.attempt + 1 == lost.attempt:
        if lost.may_retry and scheduler.request_again((lost.holder, lost.attempt)):
            message = f"{lost.sentence} The run had not started; it is submitted again."
            lifecycle.record_event(run.pk, message, attempt=run.attempt)
            return
        lifecycle.advance(run.pk, reason.final_state, reason, facts=facts, attempt=run.attempt)
        return
    parts = AttemptNode.objects.filter(attempt__run=run, attempt__number=lost.attempt)
    if lost.by_itself and not parts.exclude(phase=Phase.DONE).exists():
        return  # the nodes have said more about it
    if reason is Reason.CANCELED:
        lifecycle.advance(run.pk, RunState.CANCEL_REQUESTED, reason, facts=facts, attempt=lost.attempt)
    end_attempt(run.pk, lost.attempt, reason, facts)


def _believe_reports(now: datetime) -> None:
    """Ends the attempts that have ended by the reports of their nodes, and whose end nobody explains."""
    kinds = [kind for kind, backend in BACKENDS.items() if backend.scheduler is not None]
    if not Cluster.objects.filter(kind__in=kinds).exists():
        return
    ended = AttemptNode.objects.filter(
        attempt__run__state__in=IN_PROGRESS,
        attempt__ended_at=None,
        phase=Phase.DONE,
        node__cluster__kind__in=kinds,
    )
    last = {part.attempt_id: part for part in ended.select_related("node__cluster", "attempt")}
    for stale in last.values():
        with transaction.atomic():
            run = Run.objects.select_for_update().get(pk=stale.attempt.run_id)
            part = AttemptNode.objects.select_related("node__cluster", "attempt").get(pk=stale.pk)
            run_transitions.apply_reports(run, part, now)


def _give_back(scheduler: OutsideScheduler, now: datetime) -> None:
    keys = scheduler.open_attempts()
    if not keys:
        return
    runs = Run.objects.only("state", "attempt").in_bulk([holder for holder, _ in keys])
    ends: dict[AttemptKey, datetime] = defaultdict(lambda: now)
    for attempt in Attempt.objects.filter(run__in=runs, ended_at__lt=now).only(
        "run_id", "number", "ended_at"
    ):
        if attempt.ended_at is not None:
            ends[attempt.run_id, attempt.number] = attempt.ended_at
    scheduler.cancel([key for key in keys if _is_abandoned(runs.get(key[0]), key, ends, now)])


def _is_abandoned(run: Run | None, key: AttemptKey, ends: dict[AttemptKey, datetime], now: datetime) -> bool:
    _, number = key
    if run is None:
        return True
    if number > run.attempt:
        # It still waits for its nodes.
        return run.state != RunState.QUEUED
    return key in ends and now - ends[key] > LEAVE_WITHIN
