"""Limits on what a run may log, so that a faulty script fills neither the database nor pages."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from cachetools import LRUCache
from django.conf import settings
from django.db.models import Sum

from tracking.models import Metric
from trainhub_launch.errors import SpecError
from workspaces import process_caches
from workspaces.servers.ring import ring

TOO_MANY_KEYS = (
    "a run may have {limit} different metrics (METRIC_KEYS_PER_RUN), and this one has {count}; "
    "keep the name the same and log what changes as the step"
)
TOO_MANY_POINTS = "a run may have {limit} points in total (METRIC_POINTS_PER_RUN); log less often"
# Runs in this process's cache.
MAX_CACHED_RUNS = 2000
# Where there are several web servers, each looks again after so long.
SHARED_S = 5.0


class MetricLimitExceeded(SpecError):
    """The run has reached a limit on metrics or points."""


@dataclass(frozen=True, eq=False)
class Reservation:
    """Room for points that are about to be stored; it ends with `confirm` or `cancel`."""

    run_id: str
    keys: frozenset[str]
    points: int


@dataclass
class _RunUsage:
    """`room` is the number of points that the run may still log, besides those stored and reserved.
    `loaded_at`: monotonic seconds."""

    keys: set[str]
    room: int
    loaded_at: float = field(default_factory=time.monotonic)

    @property
    def is_old(self) -> bool:
        """Whether another server may have stored much since."""
        return not ring.is_alone and time.monotonic() - self.loaded_at > SHARED_S


# Guards both tables, also during the database query: otherwise points that become stored meanwhile would
# count neither as stored nor as reserved.
_lock = threading.Lock()
_cache: LRUCache[str, _RunUsage] = LRUCache(MAX_CACHED_RUNS)
# Reservations of this process that are not stored yet, by run id.
_reserved: defaultdict[str, set[Reservation]] = defaultdict(set)


def reserve(run_id: str, keys: Collection[str], points: int) -> Reservation:
    """Reserves room for these points of these curves; queries the database rarely. Raises
    MetricLimitExceeded.

    Within a process no more than the limit gets in. Points that are being stored at this moment may count
    twice, so that a request close to the limit is refused although it would fit. What another server stores
    counts here after at most `SHARED_S`, so that much more than the limit may get in: what all servers
    together take in this time."""
    reservation = Reservation(run_id, frozenset(keys), points)
    with _lock:
        usage = _cache.get(run_id)
        # The database is queried only where the cache would refuse: keys that other processes have logged
        # meanwhile need no more room.
        if usage is None or usage.is_old or usage.room < points or not usage.keys.issuperset(keys):
            usage = _load_usage(run_id)
        new_keys = reservation.keys - usage.keys
        if new_keys and len(usage.keys) + len(new_keys) > settings.METRIC_KEYS_PER_RUN:
            raise MetricLimitExceeded(
                "metrics.key", TOO_MANY_KEYS.format(limit=settings.METRIC_KEYS_PER_RUN, count=len(usage.keys))
            )
        if usage.room < points:
            raise MetricLimitExceeded("metrics", TOO_MANY_POINTS.format(limit=settings.METRIC_POINTS_PER_RUN))
        usage.keys |= new_keys
        usage.room -= points
        _reserved[run_id].add(reservation)
    return reservation


def confirm(reservation: Reservation) -> None:
    """Ends a reservation whose points are stored; the database counts them from now on."""
    with _lock:
        _remove(reservation)


def cancel(reservation: Reservation) -> None:
    """Ends a reservation whose points could not be stored; the run's usage is loaded again when needed."""
    with _lock:
        _remove(reservation)
        _cache.pop(reservation.run_id, None)


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _cache.clear()
        _reserved.clear()


def _remove(reservation: Reservation) -> None:
    _reserved[reservation.run_id].discard(reservation)
    if not _reserved[reservation.run_id]:
        del _reserved[reservation.run_id]


def _load_usage(run_id: str) -> _RunUsage:
    """Loads and caches the run's usage: stored points and this process's reservations. Needs the lock."""
    rows = Metric.objects.filter(run_id=run_id)
    keys, room = set(rows.values_list("key", flat=True)), int(settings.METRIC_POINTS_PER_RUN)
    room -= rows.aggregate(points=Sum("count"))["points"] or 0
    for reservation in _reserved.get(run_id, ()):
        keys |= reservation.keys
        room -= reservation.points
    _cache[run_id] = usage = _RunUsage(keys, room)
    return usage
