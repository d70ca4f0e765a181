"""Stores the histograms of runs over steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Count, QuerySet

from jobs.models import Run
from tracking.events.thinning import surplus_steps
from tracking.models import Histogram

# Of more steps, those stay that are spread evenly over all of them.
MAX_STEPS = 100
MAX_KEYS = 200
_SAME = ("run", "attempt", "key", "step")


class Buckets(NamedTuple):
    """A histogram with equally wide buckets from `low` to `high`; one bucket if both are the same."""

    low: float
    high: float
    counts: list[float]


class HistogramPoint(NamedTuple):
    key: str
    step: int
    buckets: Buckets


def append(run: Run, attempt: int, points: Iterable[HistogramPoint]) -> None:
    """Stores histograms of an attempt; of two for the same step the later one stays. New keys beyond MAX_KEYS
    are left out."""
    # A statement must not name the same row twice.
    latest = {(point.key, point.step): point for point in points}
    if not latest:
        return
    of_attempt = Histogram.objects.filter(run=run, attempt=attempt)
    known = set(of_attempt.order_by().values_list("key", flat=True).distinct())
    new = dict.fromkeys(key for key, _ in latest if key not in known)
    keys = known | set(list(new)[: MAX_KEYS - len(known)])
    rows = [
        Histogram(run=run, attempt=attempt, key=point.key, step=point.step, **point.buckets._asdict())
        for point in latest.values()
        if point.key in keys
    ]
    Histogram.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=_SAME,
        update_fields=("low", "high", "counts"),
        batch_size=500,
    )
    _thin_out(of_attempt.filter(key__in={row.key for row in rows}))


def _thin_out(rows: QuerySet[Histogram]) -> None:
    crowded = rows.order_by().values("key").annotate(steps=Count("pk")).filter(steps__gt=MAX_STEPS)
    for key in list(crowded.values_list("key", flat=True)):
        of_key = rows.filter(key=key)
        steps = of_key.order_by().values_list("step", flat=True)
        of_key.filter(step__in=surplus_steps(steps, MAX_STEPS)).delete()
