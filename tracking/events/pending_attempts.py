"""Finds the attempts whose event files need reading: unsettled ones, and recently settled ones a last
time."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from jobs.models import Attempt, AttemptNode
from tracking.events import event_reader
from workspaces import process_caches
from workspaces.servers.exclusive_work import only_once

log = logging.getLogger(__name__)
# Attempts that were settled within this time are read after a worker starts.
LOOK_BACK = timedelta(days=3)
# A transaction may commit `settled_at` a little later than its value, so rounds overlap.
OVERLAP = timedelta(minutes=1)

_unfinished: set[int] = set()
# Attempts that are completely read, with the time of it: their settled_at stays within OVERLAP for a while.
_done: dict[int, datetime] = {}
_since: datetime | None = None


def read_pending() -> None:
    """Reads all pending attempts once; does nothing while another round is running."""
    with only_once("read-events") as may:
        if may:
            _read_round(timezone.now())


@process_caches.register
def clear_cache() -> None:
    global _since  # noqa: PLW0603 - as in jobs.node_api.node_assignments
    _since = None
    _unfinished.clear()
    _done.clear()


def _read_round(now: datetime) -> None:
    global _since  # noqa: PLW0603 - guarded by the lock
    # At the first round after a start, what ended while no worker ran.
    since = (_since or now - LOOK_BACK) - OVERLAP
    parts = AttemptNode.objects.filter(
        Q(settled_at=None) | Q(settled_at__gte=since) | Q(attempt_id__in=_unfinished)
    )
    rows = parts.filter(attempt__run__deleted_at=None).values_list("attempt_id", "settled_at")
    unsettled = {pk for pk, settled_at in rows if settled_at is None}
    candidates = {pk for pk, _ in rows} - _done.keys()
    # While nothing runs, which is most of the time, building the other queries costs more than this one.
    if candidates:
        _read_attempts(candidates, unsettled, now)
    _since = now
    for expired in [key for key, at in _done.items() if at < since - OVERLAP]:
        del _done[expired]


def _read_attempts(candidates: set[int], unsettled: set[int], now: datetime) -> None:
    attempts = Attempt.objects.filter(pk__in=candidates).select_related("run")
    for attempt in attempts.defer("plan", "run__preview"):
        _read_attempt(attempt, is_over=attempt.pk not in unsettled, now=now)


def _read_attempt(attempt: Attempt, *, is_over: bool, now: datetime) -> None:
    try:
        at_end = event_reader.read_attempt(attempt, is_over=is_over)
    except Exception:
        # An error in one run must not stop the others; the next round retries it.
        log.exception("Event files of run %s", attempt.run_id)
        at_end = False
    if not at_end:
        _unfinished.add(attempt.pk)
        return
    _unfinished.discard(attempt.pk)
    if is_over:
        _done[attempt.pk] = now
