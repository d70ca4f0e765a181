"""How much a run may log, so that a script gone wild fills neither the database nor anybody's page."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from django.conf import settings
from django.db.models import Sum

from tracking.models import Metric
from trainhub_launch.errors import SpecError
from workspaces import process_caches

KEYS = (
    "a run may have {most} different metrics (METRIC_KEYS_PER_RUN), and this one has {held}; "
    "let the name stay the same and tell what changes as the step"
)
POINTS = "a run may have {most} points in all (METRIC_POINTS_PER_RUN); log less often"
MOST_REMEMBERED = 2000
"""Runs that this process keeps in mind."""


class TooMuch(SpecError):
    """The run has logged as much as it may."""


@dataclass
class _Known:
    keys: set[str] = field(default_factory=set)
    room: int = 0


_lock = threading.Lock()
_known: OrderedDict[str, _Known] = OrderedDict()


def check(run_id: str, keys: Collection[str], points: int) -> None:
    """Raises TooMuch where these points of these curves are more than the run may have; asks the database
    seldom."""
    with _lock:
        known = _known.get(run_id)
    if known is None or known.room < points or not known.keys.issuperset(keys):
        known = _look_up(run_id)
    fresh = set(keys) - known.keys
    if fresh and len(known.keys) + len(fresh) > settings.METRIC_KEYS_PER_RUN:
        raise TooMuch("metrics.key", KEYS.format(most=settings.METRIC_KEYS_PER_RUN, held=len(known.keys)))
    if known.room < points:
        raise TooMuch("metrics", POINTS.format(most=settings.METRIC_POINTS_PER_RUN))
    with _lock:
        known.keys |= fresh
        known.room -= points


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _known.clear()


def _look_up(run_id: str) -> _Known:
    rows = Metric.objects.filter(run_id=run_id)
    stored = rows.aggregate(points=Sum("count"))["points"] or 0
    found = _Known(set(rows.values_list("key", flat=True)), settings.METRIC_POINTS_PER_RUN - stored)
    with _lock:
        _known[run_id] = found
        _known.move_to_end(run_id)
        while len(_known) > MOST_REMEMBERED:
            _known.popitem(last=False)
    return found
