"""How many runs experiments have, by state."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Max

from jobs.models import Run
from jobs.states import ACTIVE, RunState


@dataclass
class ExperimentCounts:
    """Of the runs of an experiment that are not deleted; nested and archived ones count, too. `last`: the
    greatest number of a run, 0 without any."""

    runs: int = 0
    active: int = 0
    failed: int = 0
    last: int = 0


def counts_of_experiments(ids: Collection[int]) -> dict[int, ExperimentCounts]:
    """Returns the counts by experiment. One query, of whose conditions and columns all are in the index
    run_state_counts: PostgreSQL reads no runs for it."""
    counts = {pk: ExperimentCounts() for pk in ids}
    rows = (
        Run.objects.not_deleted()
        .filter(experiment__in=list(ids))
        .order_by()
        .values_list("experiment", "state")
        .annotate(Count("number"), Max("number"))
    )
    for experiment, state, count, last in rows:
        item = counts[experiment]
        item.runs += count
        item.active += count if state in ACTIVE else 0
        item.failed += count if state == RunState.FAILED else 0
        item.last = max(item.last, last)
    return counts
