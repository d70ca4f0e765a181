"""Slices become blocks: what came in many requests, curve by curve, so that reading one curve costs its own
points only.

In one transaction for each run, slices out and blocks in: a crash loses and doubles nothing.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import accumulate

from django.db import connection, transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from tracking.metrics.points import (
    MOST_IN_BLOCK,
    VERSION,
    Points,
    PointsError,
    block_bytes,
    joined,
    read_block,
    read_slice,
)
from tracking.models import Metric, MetricBlock, MetricSlice
from workspaces.set_aside import set_aside, usable

log = logging.getLogger(__name__)
MOST_SLICES = 512
POINTS_PER_CURVE = 1024
"""A run's slices are folded when there are so many, or so many points of each curve."""
SMALL = MOST_IN_BLOCK // 8
"""A curve's last block that holds fewer points is written anew with those that come."""
QUIET_FOR = timedelta(minutes=10)
AT_ONCE, POINTS_AT_ONCE = 2000, 1_000_000
"""Slices, and points of them, that are read in one go."""

_lock = threading.Lock()
_counted: dict[str, tuple[int, int]] = {}
_due: set[str] = set()


def count(run_id: str, curves: int, points: int) -> None:
    """A slice has been stored; a round folds the run when there are enough of them."""
    with _lock:
        slices, held = _counted.get(run_id, (0, 0))
        _counted[run_id] = slices + 1, held + points
        if slices + 1 >= MOST_SLICES or held + points >= POINTS_PER_CURVE * max(4, curves):
            _due.add(run_id)
            del _counted[run_id]


def fold_due() -> None:
    """A round: fold the runs that have logged much since."""
    with _lock:
        due = set(_due)
        _due.clear()
    _fold_each(due)


def fold_rest() -> None:
    """What no process has in mind: slices of runs that are quiet, or whose hub was started anew."""
    waiting = _slices().values("run_id").annotate(slices=Count("id"), newest=Max("created_at"))
    quiet = Q(newest__lt=timezone.now() - QUIET_FOR) | Q(slices__gte=2 * MOST_SLICES)
    _fold_each(list(waiting.filter(quiet).values_list("run_id", flat=True)))


def _fold_each(run_ids: Iterable[str]) -> None:
    for run_id in run_ids:
        try:
            while fold(run_id):
                pass
        except Exception:
            # One run's trouble is not the others'; its slices stay, and are tried again when it is quiet.
            log.exception("Metrics of run %s could not be folded", run_id)


def fold(run_id: str) -> bool:
    """Fold the run's oldest slices; whether there may be more."""
    with transaction.atomic():
        slices = _slices().filter(run_id=run_id).order_by("id")
        if connection.vendor == "postgresql":
            # Whoever else folds this run does it once.
            slices = slices.select_for_update(skip_locked=True)
        rows = list(slices.values_list("id", "points")[:AT_ONCE])
        until = accumulate(points for _, points in rows)
        taken = [pk for (pk, points), end in zip(rows, until, strict=True) if end - points < POINTS_AT_ONCE]
        if taken:
            chosen = MetricSlice.objects.filter(pk__in=taken)
            curves, unreadable = _curves(run_id, chosen.order_by("id").values_list("id", "data"))
            _store(run_id, curves)
            set_aside(MetricSlice, unreadable)
            chosen.exclude(pk__in=list(unreadable)).delete()
    return len(taken) == AT_ONCE or len(taken) < len(rows)


def _slices() -> QuerySet[MetricSlice]:
    """The slices to fold: without those that were set aside."""
    return MetricSlice.objects.filter(usable(VERSION))


def _curves(
    run_id: str, slices: Iterable[tuple[int, bytes | memoryview]]
) -> tuple[dict[str, Points], dict[int, int]]:
    """The points of each curve, and of each slice that cannot be read its version (workspaces.set_aside)."""
    told: defaultdict[str, list[Points]] = defaultdict(list)
    unreadable: dict[int, int] = {}
    for pk, data in slices:
        try:
            for key, points in read_slice(bytes(data)).items():
                told[key].append(points)
        except PointsError as error:
            unreadable[pk] = error.version
            log.warning("A slice of run %s is set aside: %s", run_id, error)
    return {key: joined(parts) for key, parts in told.items()}, unreadable


def _store(run_id: str, curves: Mapping[str, Points]) -> None:
    metrics = dict(Metric.objects.filter(run_id=run_id, key__in=list(curves)).values_list("key", "pk"))
    tails = _tails(list(metrics.values()))
    fresh: list[MetricBlock] = []
    for key, points in curves.items():
        metric = metrics[key]
        tail = tails.get(metric)
        number = 0 if tail is None else tail.number + 1
        whole = points
        before = _small(tail)
        if tail is not None and before is not None:
            number, whole = tail.number, joined((before, points))
            tail.delete()
        for first in range(0, len(whole), MOST_IN_BLOCK):
            part = whole[first : first + MOST_IN_BLOCK]
            fresh.append(
                MetricBlock(metric_id=metric, number=number, points=len(part), data=block_bytes(part))
            )
            number += 1
    MetricBlock.objects.bulk_create(fresh, batch_size=200)


def _small(tail: MetricBlock | None) -> Points | None:
    """What a small last block holds; None where there is none. One that cannot be read stays as it is."""
    if tail is None or tail.points >= SMALL:
        return None
    try:
        return read_block(bytes(tail.data))
    except PointsError as error:
        log.error("A block of metric %s stays as it is: %s", tail.metric_id, error)
        return None


def _tails(metrics: list[int]) -> dict[int, MetricBlock]:
    """The last block of each curve."""
    later = MetricBlock.objects.filter(metric=OuterRef("metric"), number__gt=OuterRef("number"))
    last = MetricBlock.objects.filter(~Exists(later), metric__in=metrics)
    return {block.metric_id: block for block in last.only("metric_id", "number", "points")}
