"""Stores the cause of an attempt, so that lists and pages need not read logs."""

from __future__ import annotations

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery, TextField
from django.db.models.fields.json import KT

from jobs import lifecycle
from jobs.causes.attempt_cause import find_cause, unsuccessful_ranks
from jobs.causes.cause import Cause
from jobs.causes.reasons import RANK_REASONS, WITHOUT_CAUSE
from jobs.models import Attempt, Member, Run
from jobs.outcomes import rank_failure
from jobs.querysets import RunQuerySet
from jobs.states import FINAL, MemberState, RunKind, RunState
from workspaces.database.compiled_queries import compiled


def store_cause(run_id: str, attempt: int) -> Cause | None:
    """Finds and stores the cause; records an event if it has changed. Returns the cause, or None."""
    row = next(iter(_attempts(run_id, attempt)), None)
    if row is None or (row.run.attempt == attempt and row.run.state in WITHOUT_CAUSE):
        return None
    # While other ranks still end, an error of a rank's own cannot be outweighed any more: its log need not be
    # read again.
    if (
        row.cause
        and row.cause.get("is_certain")
        and row.run.state not in FINAL
        and row.run.attempt == attempt
    ):
        return Cause.from_json(row.cause)
    cause = find_cause(run_id, attempt)
    fields = cause.to_json() if cause else None
    if fields == row.cause:
        return cause
    # Two workers may find causes at the same time; the event is recorded by the one that changes the line.
    with transaction.atomic():
        # Compared under the lock with what is stored now, not with what was read before the logs.
        earlier = Attempt.objects.select_for_update().only("cause").get(pk=row.pk).cause
        Attempt.objects.filter(pk=row.pk).update(cause=fields)
        if cause is not None and cause.rank is not None and cause.line != (earlier or {}).get("line"):
            lifecycle.record_event(run_id, f"The cause: {cause.line}", attempt=attempt)
        if cause is not None:
            _correct_reason(row, cause)
    return cause


@compiled
def _attempts(run_id: str, number: int) -> QuerySet[Attempt]:
    attempts = Attempt.objects.filter(run_id=run_id, number=number).select_related("run")
    # Long, and of no use here.
    return attempts.defer("plan", "run__spec", "run__preview")


def store_soon(run_id: str, attempt: int) -> None:
    """Stores the cause once the transaction has committed: reading logs must not hold a lock, and its failure
    must not affect the transaction."""
    transaction.on_commit(lambda: store_cause(run_id, attempt), robust=True)


def for_run(run: Run, attempt: int | None = None) -> Cause | None:
    """Returns the cause of the run's latest attempt, or of the given one; finds and stores it if
    necessary."""
    number = run.attempt if attempt is None else attempt
    if run.kind != RunKind.JOB or (number == run.attempt and run.state in WITHOUT_CAUSE):
        return None
    if number == 0 and run.state == RunState.QUEUED:
        return None
    row = Attempt.objects.filter(run=run, number=number).only("cause", "failing", "ended_at").first()
    if row is not None and row.cause:
        return Cause.from_json(row.cause)
    if row is None:
        return find_cause(run.pk, number) if run.state == RunState.FAILED else None
    # Pages call this often: no logs are read while no rank of the running attempt has failed.
    if row.ended_at is None and not Member.objects.filter(attempt=row, state=MemberState.FAILED).exists():
        return None
    return store_cause(run.pk, number)


def annotate_lines(runs: RunQuerySet) -> RunQuerySet:
    """Adds `cause_line` to each run: the stored cause of its latest attempt in one line, or None."""
    latest = Attempt.objects.filter(run=OuterRef("pk"), number=OuterRef("attempt"))
    line = Subquery(latest.values(line=KT("cause__line"))[:1], output_field=TextField())
    annotated: RunQuerySet = runs.annotate(cause_line=line)
    return annotated


def _correct_reason(attempt: Attempt, cause: Cause) -> None:
    """Corrects the run's reason, which names the first rank by time, if another rank is the cause."""
    run = Run.objects.select_for_update().get(pk=attempt.run_id)
    if run.attempt != attempt.number or run.reason not in RANK_REASONS or run.facts.get("rank") == cause.rank:
        return
    rank = next(
        (
            rank
            for rank in unsuccessful_ranks(attempt)
            if rank.rank == cause.rank and rank.state == MemberState.FAILED
        ),
        None,
    )
    if rank is not None:
        lifecycle.update_reason(run, *rank_failure(rank, rank.node))
