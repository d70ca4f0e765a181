"""Follows what clusters with a queue of their own do with the runs: ends attempts that lost their nodes, and
gives back what ended runs still hold there."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from django.utils import timezone

from clusters.backends.contract import AttemptKey, LostAttempt, OutsideScheduler
from clusters.kinds import BACKENDS
from jobs import lifecycle
from jobs.attempts.attempt_end import end_attempt
from jobs.models import Attempt, Run
from jobs.states import FINAL, Reason, RunState

# A node ends by itself once the hub has everything; what takes longer is canceled.
LEAVE_WITHIN = timedelta(seconds=30)


def tend_backends() -> None:
    now = timezone.now()
    for backend in BACKENDS.values():
        if backend.scheduler is not None:
            for lost in backend.scheduler.observe():
                _end(lost)
            _give_back(backend.scheduler, now)


def _end(lost: LostAttempt) -> None:
    reason = Reason.TAKEN_OUTSIDE if lost.may_retry else Reason.ENDED_OUTSIDE
    facts: dict[str, object] = {"detail": lost.sentence}
    if lost.canceled_by:
        reason, facts = Reason.CANCELED, {"who": lost.canceled_by}
    run = Run.objects.filter(pk=lost.holder).exclude(state__in=FINAL).first()
    if run is None:
        return  # its job has ended because the run has
    if run.state == RunState.QUEUED and run.attempt + 1 == lost.attempt:
        # It never had its nodes.
        lifecycle.advance(run.pk, reason.final_state, reason, facts=facts, attempt=run.attempt)
        return
    if reason is Reason.CANCELED:
        lifecycle.advance(run.pk, RunState.CANCEL_REQUESTED, reason, facts=facts, attempt=lost.attempt)
    end_attempt(run.pk, lost.attempt, reason, facts)


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
