"""Bounds of the first runs in an order by their own columns, on PostgreSQL.

A filter by logged data, or a duration that grows while the run goes on, leaves PostgreSQL no index with the
runs in order: it would find every run that matches and sort them to show fifty. So a run further down in the
order is looked up, and bounds the search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import DurationField, F, Q, QuerySet

from jobs.models import Run
from tracking.search.attributes import TimeDifference
from workspaces.models import Workspace

# The first bound is right if the filter keeps one run of a few, the last one if it keeps a few of hundreds.
NEWEST_FACTORS, DURATION_FACTORS = (8, 64, 512), (2, 32)
MAX_RUNS = 50_000
# As the index run_lasted has it.
LASTED = TimeDifference("finished_at", "started_at", output_field=DurationField())


def newest_bounds(workspace: Workspace, count: int) -> Iterator[Q]:
    """Yields conditions, each wider than the one before, of the newest runs, many more than `count`; none
    where there are few runs, or where `count` is large."""
    times = (
        Run.objects.filter(workspace=workspace).order_by("-created_at").values_list("created_at", flat=True)
    )
    for time in _values_after(times, count, NEWEST_FACTORS):
        yield Q(created_at__gte=time)


def duration_bounds(workspace: Workspace, count: int, *, descending: bool) -> Iterator[Q]:
    """As newest_bounds, of the runs that lasted longest or shortest, and of those that have not ended. The
    conditions need the alias `lasted` (LASTED)."""
    ended = Run.objects.filter(workspace=workspace).annotate(lasted=LASTED).filter(lasted__isnull=False)
    lasted = F("lasted").desc() if descending else F("lasted").asc()
    for value in _values_after(
        ended.order_by(lasted).values_list("lasted", flat=True), count, DURATION_FACTORS
    ):
        beyond = Q(lasted__gte=value) if descending else Q(lasted__lte=value)
        yield beyond | Q(finished_at=None, started_at__isnull=False)


def _values_after(values: QuerySet[Any], count: int, factors: tuple[int, ...]) -> Iterator[Any]:
    for factor in factors:
        if count * factor > MAX_RUNS:
            return
        found = list(values[count * factor : count * factor + 1])
        if not found:
            return
        yield found[0]
