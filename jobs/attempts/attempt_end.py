"""Ends an attempt: the run enters the reason's final state, or is queued again if it has retries left."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from jobs import causes, lifecycle
from jobs.models import Run, RunEvent
from jobs.states import Reason, RunState

# Reasons that another attempt cannot change. Limits of time and disk are among them: the same work would take
# as much again.
FINAL_REASONS = frozenset(
    {
        Reason.CANCELED,
        Reason.COMPLETED,
        Reason.DISK_LIMIT,
        Reason.DOES_NOT_FIT,
        Reason.MISMATCH,
        Reason.TIMED_OUT,
        Reason.LIMIT_OUTSIDE,
    }
)
# Nodes that were taken from the run, through no fault of its own.
LOSSES = (Reason.PREEMPTED, Reason.TAKEN_OUTSIDE)
# How often a run may be queued again after the loss of a low-priority node without using up a retry.
MAX_PREEMPTIONS = 10


def end_attempt(
    run_id: str,
    attempt: int,
    reason: Reason,
    facts: Mapping[str, object],
    *,
    actor: str = "hub",
    at: datetime | None = None,
    locked: Run | None = None,
) -> bool:
    """Ends the run, or queues it again.

    Returns False if the run has ended already or is at another attempt. A pending cancel request takes
    precedence over `reason`. `locked`: the run as the caller has locked it.
    """
    with transaction.atomic(savepoint=False):
        run = locked or lifecycle.lock_run(run_id)
        # An end of an earlier attempt, told late, must not end the present one.
        if run is None or run.attempt != attempt:
            return False
        if run.state == RunState.CANCEL_REQUESTED:
            reason, facts = Reason.CANCELED, run.facts
        if reason.final_state is RunState.FAILED and reason is not Reason.PREEMPTED_BY_RUN:
            causes.store_soon(run_id, attempt)
        # Most runs end here, and how often they were restarted does not matter.
        if reason in FINAL_REASONS:
            return _end(run, reason, facts, actor=actor, at=at)
        restarts = RunEvent.objects.filter(run=run, to_state=RunState.QUEUED)
        losses = restarts.filter(reason__in=LOSSES).count()
        preemptions = losses + restarts.filter(reason=Reason.PREEMPTED_BY_RUN).count()
        # A run that lets others pass may do so without end; a node that vanishes may never come back.
        if reason is Reason.PREEMPTED_BY_RUN or (reason in LOSSES and losses < MAX_PREEMPTIONS):
            message = (
                f"Attempt {attempt} ended: {reason.sentence(**facts)} Queued again without using up a retry."
            )
            return _queue_again(run, reason, facts, message, actor=actor, at=at)
        # The first attempt is no retry, and neither are those that followed a preemption.
        retries = int(run.spec["limits"]["retries"]) - max(0, attempt - 1 - preemptions)
        if retries <= 0:
            return _end(run, reason, facts, actor=actor, at=at)
        more = "no further" if retries == 1 else f"{retries - 1} more"
        message = (
            f"Attempt {attempt} failed: {reason.sentence(**facts)} Trying again, with {more} after that."
        )
        return _queue_again(run, reason, facts, message, actor=actor, at=at)


def _end(run: Run, reason: Reason, facts: Mapping[str, object], *, actor: str, at: datetime | None) -> bool:
    state, attempt = reason.final_state, run.attempt
    return lifecycle.advance(
        run.pk, state, reason, facts=facts, actor=actor, attempt=attempt, at=at, locked=run
    )


def _queue_again(
    run: Run, reason: Reason, facts: Mapping[str, object], message: str, *, actor: str, at: datetime | None
) -> bool:
    return lifecycle.advance(
        run.pk, RunState.QUEUED, reason, facts=facts, actor=actor, message=message, attempt=run.attempt, at=at
    )
