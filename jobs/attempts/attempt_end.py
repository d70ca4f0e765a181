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
) -> bool:
    """Ends the run, or queues it again.

    Returns False if the run has ended already or is at another attempt. A pending cancel request takes
    precedence over `reason`.
    """
    with transaction.atomic():
        # `attempt` in the filter: an end of an earlier attempt, told late, must not end the present one.
        run = Run.objects.select_for_update().filter(pk=run_id, attempt=attempt).first()
        if run is None:
            return False
        if run.state == RunState.CANCEL_REQUESTED:
            reason, facts = Reason.CANCELED, run.facts
        if reason.final_state is RunState.FAILED and reason is not Reason.PREEMPTED_BY_RUN:
            causes.store_soon(run_id, attempt)
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
        if reason in FINAL_REASONS or retries <= 0:
            return lifecycle.advance(
                run_id, reason.final_state, reason, facts=facts, actor=actor, attempt=attempt, at=at
            )
        more = "no further" if retries == 1 else f"{retries - 1} more"
        message = (
            f"Attempt {attempt} failed: {reason.sentence(**facts)} Trying again, with {more} after that."
        )
        return _queue_again(run, reason, facts, message, actor=actor, at=at)


def _queue_again(
    run: Run, reason: Reason, facts: Mapping[str, object], message: str, *, actor: str, at: datetime | None
) -> bool:
    return lifecycle.advance(
        run.pk, RunState.QUEUED, reason, facts=facts, actor=actor, message=message, attempt=run.attempt, at=at
    )
