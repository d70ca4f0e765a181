"""Whether Slurm caused the end that the nodes of an attempt report.

Slurm signals the ranks and the node program at once, so a report may be here before anybody has asked Slurm.
It decides first, and signals then: whoever asks after a report hears of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, Q

from clusters.allocations.states import AllocationState
from clusters.backends.contract import AttemptKey
from clusters.backends.slurm.states import STATES, JobPhase
from clusters.models import Allocation
from clusters.task_messages import send_task_soon
from workspaces.task_names import TaskName

# How long an end waits for the word of a Slurm that is away, or of a job whose processes do not end.
PATIENCE = timedelta(seconds=60)
# What a job ends as whose processes ended by themselves.
OWN_ENDS = (STATES["COMPLETED"], STATES["FAILED"])
_ENDING = frozenset(state for state in STATES.values() if state.phase is JobPhase.ENDING)


def may_explain(key: AttemptKey, now: datetime) -> bool:
    """See OutsideScheduler. The first time, the worker is told to ask Slurm soon."""
    holder, attempt = key
    allocation = Allocation.objects.filter(holder=holder, attempt=attempt).first()
    if allocation is None or allocation.state == AllocationState.WANTED:
        return False
    if allocation.over_at is not None:
        # Whoever saw the end is about to tell the run.
        return STATES.get(allocation.word) not in OWN_ENDS and is_recent(allocation, now)
    if allocation.end_report_at is None:
        _ask_soon(allocation, now)
        return True
    has_answer = allocation.seen_at is not None and allocation.seen_at >= allocation.end_report_at
    # What the job ends as, it tells only when its last process has ended.
    is_ending = STATES.get(allocation.word) in _ENDING
    return (not has_answer or is_ending) and now - allocation.end_report_at < PATIENCE


def is_recent(allocation: Allocation, now: datetime) -> bool:
    """Returns whether the allocation is over, and not for long."""
    return allocation.over_at is not None and now - allocation.over_at < PATIENCE


def _ask_soon(allocation: Allocation, now: datetime) -> None:
    unanswered = Q(seen_at=None) | Q(seen_at__lt=F("end_report_at"))
    of_cluster = Allocation.objects.filter(cluster=allocation.cluster_id, over_at=None)
    # One call answers for all.
    is_pending = of_cluster.filter(unanswered, end_report_at__isnull=False).exists()
    Allocation.objects.filter(pk=allocation.pk).update(end_report_at=now)
    if not is_pending:
        send_task_soon(TaskName.TEND_BACKENDS)
