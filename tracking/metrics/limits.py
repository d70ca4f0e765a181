"""Limits on what a run may log, so that a faulty script fills neither the database nor pages."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Sum

from tracking.models import Metric
from trainhub_launch.errors import SpecError
from workspaces import process_caches

TOO_MANY_KEYS = (
    "a run may have {most} different metrics (METRIC_KEYS_PER_RUN), and this one has {held}; "
    "keep the name the same and log what changes as the step"
)
TOO_MANY_POINTS = "a run may have {most} points in total (METRIC_POINTS_PER_RUN); log less often"
MOST_REMEMBERED = 2000
"""Runs in this process's cache."""


class MetricLimitExceeded(SpecError):
    """The run has reached a limit on metrics or points."""


@dataclass(frozen=True, eq=False)
class Reservation:
    """Room for points that are about to be stored. Ends with `confirm` or `cancel`."""

    run_id: str
    keys: frozenset[str]
    points: int


@dataclass
class _Known:
    """`room` is the number of points that the run may still log, besides those stored and reserved."""

    keys: set[str]
    room: int


_lock = threading.Lock()
"""Guards both tables, also while the database is asked: in between, points must not become stored that count
as neither."""
_known: OrderedDict[str, _Known] = OrderedDict()
_reserved: defaultdict[str, set[Reservation]] = defaultdict(set)
"""Run -> what this process has reserved and not yet stored."""


def reserve(run_id: str, keys: Collection[str], points: int) -> Reservation:
    """Reserves room for these points of these curves; queries the database rarely. Raises
    MetricLimitExceeded.

    Exact within a process. Another process that logs to the same run at the same moment is not seen.
    """
    reservation = Reservation(run_id, frozenset(keys), points)
    with _lock:
        known = _known.get(run_id)
        if known is None or known.room < points or not known.keys.issuperset(keys):
            known = _look_up(run_id)
        fresh = reservation.keys - known.keys
        if fresh and len(known.keys) + len(fresh) > settings.METRIC_KEYS_PER_RUN:
            raise MetricLimitExceeded(
                "metrics.key", TOO_MANY_KEYS.format(most=settings.METRIC_KEYS_PER_RUN, held=len(known.keys))
            )
        if known.room < points:
            raise MetricLimitExceeded("metrics", TOO_MANY_POINTS.format(most=settings.METRIC_POINTS_PER_RUN))
        known.keys |= fresh
        known.room -= points
        _reserved[run_id].add(reservation)
    return reservation


def confirm(reservation: Reservation) -> None:
    """The points are stored: from now on the database tells of them."""
    with _lock:
        _forget(reservation)


def cancel(reservation: Reservation) -> None:
    """The points could not be stored: what the run has is looked up when it is next needed."""
    with _lock:
        _forget(reservation)
        _known.pop(reservation.run_id, None)


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _known.clear()
        _reserved.clear()


def _forget(reservation: Reservation) -> None:
    _reserved[reservation.run_id].discard(reservation)
    if not _reserved[reservation.run_id]:
        del _reserved[reservation.run_id]


def _look_up(run_id: str) -> _Known:
    """What the run has stored, and this process has reserved for it. With the lock held."""
    rows = Metric.objects.filter(run_id=run_id)
    keys, room = set(rows.values_list("key", flat=True)), int(settings.METRIC_POINTS_PER_RUN)
    room -= rows.aggregate(points=Sum("count"))["points"] or 0
    for reservation in _reserved.get(run_id, ()):
        keys |= reservation.keys
        room -= reservation.points
    _known[run_id] = found = _Known(keys, room)
    _known.move_to_end(run_id)
    while len(_known) > MOST_REMEMBERED:
        _known.popitem(last=False)
    return found
