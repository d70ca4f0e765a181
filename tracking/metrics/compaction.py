"""Folds slices (points of many curves from one request) into blocks (points of one curve), so that reading a
curve reads only its own points.

One transaction deletes the slices and inserts the blocks, so a crash neither loses nor duplicates points.
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
    MAX_BLOCK_POINTS,
    VERSION,
    Points,
    PointsError,
    block_bytes,
    concatenate,
    read_block,
    read_slice,
)
from tracking.models import Metric, MetricBlock, MetricSlice
from workspaces.set_aside import set_aside, usable

log = logging.getLogger(__name__)
# A run is folded when it has so many slices, or so many points for each curve.
MAX_SLICES, POINTS_PER_CURVE = 512, 1024
# A last block with fewer points is merged with the new points: rewriting it costs little, and a run that logs
# slowly would otherwise leave thousands of small blocks.
SMALL_BLOCK_POINTS = MAX_BLOCK_POINTS // 8
QUIET_FOR = timedelta(minutes=10)
# Limits of the slices and points that one transaction folds.
MAX_SLICES_AT_ONCE, MAX_POINTS_AT_ONCE = 2000, 1_000_000

_lock = threading.Lock()
_pending_counts: dict[str, tuple[int, int]] = {}
_due: set[str] = set()


def record_slice(run_id: str, curves: int, points: int) -> None:
    """Counts a stored slice; the next round folds the run when there are enough."""
    with _lock:
        slices, stored = _pending_counts.get(run_id, (0, 0))
        _pending_counts[run_id] = slices + 1, stored + points
        # A run with thousands of curves gets its slices folded before each curve has a full block; else
        # reading it would take too long.
        if slices + 1 >= MAX_SLICES or stored + points >= POINTS_PER_CURVE * max(4, curves):
            _due.add(run_id)
            del _pending_counts[run_id]


def fold_due() -> None:
    """Folds the runs with enough new slices; the background loop calls it."""
    with _lock:
        due = set(_due)
        _due.clear()
    _fold_each(due)


def fold_quiet() -> None:
    """Folds slices that no process counts: those of runs that stopped logging, or from before a restart of
    the hub."""
    pending = _slices().values("run_id").annotate(slices=Count("id"), newest=Max("created_at"))
    # Twice the usual number: a process that counts them would have folded them by now.
    quiet = Q(newest__lt=timezone.now() - QUIET_FOR) | Q(slices__gte=2 * MAX_SLICES)
    _fold_each(list(pending.filter(quiet).values_list("run_id", flat=True)))


def _fold_each(run_ids: Iterable[str]) -> None:
    for run_id in run_ids:
        try:
            while fold_run(run_id):
                pass
        except Exception:
            # An error in one run must not stop the others. Its slices stay, and `fold_quiet` tries them
            # again.
            log.exception("Metrics of run %s could not be folded", run_id)


def fold_run(run_id: str) -> bool:
    """Folds the run's oldest slices; returns whether there may be more."""
    with transaction.atomic():
        slices = _slices().filter(run_id=run_id).order_by("id")
        if connection.vendor == "postgresql":
            # Skip slices that another process is folding.
            slices = slices.select_for_update(skip_locked=True)
        rows = list(slices.values_list("id", "points")[:MAX_SLICES_AT_ONCE])
        totals = accumulate(points for _, points in rows)
        # At least the first slice is selected, however large it is; else the loop would never end.
        selected = [
            pk for (pk, points), end in zip(rows, totals, strict=True) if end - points < MAX_POINTS_AT_ONCE
        ]
        if selected:
            rows_to_fold = MetricSlice.objects.filter(pk__in=selected)
            curves, unreadable = _curves(run_id, rows_to_fold.order_by("id").values_list("id", "data"))
            _store(run_id, curves)
            set_aside(MetricSlice, unreadable)
            rows_to_fold.exclude(pk__in=list(unreadable)).delete()
    return len(selected) == MAX_SLICES_AT_ONCE or len(selected) < len(rows)


def _slices() -> QuerySet[MetricSlice]:
    """Returns the slices that can be folded, without those that were set aside."""
    return MetricSlice.objects.filter(usable(VERSION))


def _curves(
    run_id: str, slices: Iterable[tuple[int, bytes | memoryview]]
) -> tuple[dict[str, Points], dict[int, int]]:
    """Returns the points by key, and the version of each unreadable slice by its id (see
    workspaces.set_aside)."""
    by_key: defaultdict[str, list[Points]] = defaultdict(list)
    unreadable: dict[int, int] = {}
    for pk, data in slices:
        try:
            for key, points in read_slice(bytes(data)).items():
                by_key[key].append(points)
        except PointsError as error:
            unreadable[pk] = error.version
            log.warning("A slice of run %s is set aside: %s", run_id, error)
    return {key: concatenate(parts) for key, parts in by_key.items()}, unreadable


def _store(run_id: str, curves: Mapping[str, Points]) -> None:
    metrics = dict(Metric.objects.filter(run_id=run_id, key__in=list(curves)).values_list("key", "pk"))
    tails = _tails(list(metrics.values()))
    blocks: list[MetricBlock] = []
    for key, points in curves.items():
        # The curve's row exists: it was stored in the same transaction as the slice.
        metric = metrics[key]
        tail = tails.get(metric)
        number = 0 if tail is None else tail.number + 1
        merged = points
        previous = _small_tail(tail)
        if tail is not None and previous is not None:
            number, merged = tail.number, concatenate((previous, points))
            tail.delete()
        for first in range(0, len(merged), MAX_BLOCK_POINTS):
            part = merged[first : first + MAX_BLOCK_POINTS]
            blocks.append(
                MetricBlock(metric_id=metric, number=number, points=len(part), data=block_bytes(part))
            )
            number += 1
    MetricBlock.objects.bulk_create(blocks, batch_size=200)


def _small_tail(tail: MetricBlock | None) -> Points | None:
    """Returns the points of a small last block, or None; one that cannot be read is left unchanged."""
    if tail is None or tail.points >= SMALL_BLOCK_POINTS:
        return None
    try:
        return read_block(bytes(tail.data))
    except PointsError as error:
        log.error("A block of metric %s stays as it is: %s", tail.metric_id, error)
        return None


def _tails(metrics: list[int]) -> dict[int, MetricBlock]:
    """Returns the last block of each curve, by metric id."""
    later = MetricBlock.objects.filter(metric=OuterRef("metric"), number__gt=OuterRef("number"))
    last = MetricBlock.objects.filter(~Exists(later), metric__in=metrics)
    return {block.metric_id: block for block in last.only("metric_id", "number", "points")}
