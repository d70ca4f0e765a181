"""Records when the hub could receive reports: silence of a node counts only while the hub was listening."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from asgiref.sync import sync_to_async
from django.db import DatabaseError, close_old_connections
from django.db.models import QuerySet
from django.utils import timezone

from clusters.models import Hearing, Node
from workspaces.database.compiled_queries import compiled

log = logging.getLogger(__name__)
PULSE_S = 5.0
# Two pulses may fail or be late before the window counts as interrupted.
MAX_PULSE_GAP = timedelta(seconds=3 * PULSE_S)
_PROCESS_STARTED = timezone.now()
_reports_in_progress: Counter[int] = Counter()
_cached_window: tuple[float, ListeningWindow | None] = (float("-inf"), None)


@dataclass(frozen=True)
class ListeningWindow:
    """The time in which the hub listened without a gap; `until` None = up to now."""

    since: datetime
    until: datetime | None

    def silence(self, node: Node, now: datetime) -> timedelta:
        """Returns for how long the node has not reported within the window, at least 0."""
        return self.part(node.last_report_at or self.since, now)

    def part(self, begin: datetime, now: datetime) -> timedelta:
        """Returns how much of the time from `begin` to `now` lies within the window."""
        return max((self.until or now) - max(self.since, begin), timedelta(0))


def listening_window(now: datetime) -> ListeningWindow:
    """Returns the current window. Before the first pulse it starts with this process."""
    row = next(iter(_hearings()), None)
    if row is None:
        return ListeningWindow(_PROCESS_STARTED, None)
    # A server that stopped pulsing receives no reports: silence does not grow until it is back.
    return ListeningWindow(row.since, row.until if now - row.until > MAX_PULSE_GAP else None)


@compiled
def _hearings() -> QuerySet[Hearing]:
    return Hearing.objects.filter(pk=1)


def cached_window() -> ListeningWindow | None:
    """Returns the window as of the last `refresh`, without a query; None when that is too long ago."""
    refreshed_at, window = _cached_window
    return window if time.monotonic() - refreshed_at < PULSE_S else None


def refresh() -> None:
    """Reads the current window into the cache."""
    global _cached_window  # noqa: PLW0603 - one tuple, replaced whole
    _cached_window = time.monotonic(), listening_window(timezone.now())


@contextmanager
def report_in_progress(node: Node) -> Iterator[None]:
    """Marks a report that is received but not processed yet: an overloaded hub must not count its node as
    silent."""
    _reports_in_progress[node.pk] += 1
    try:
        yield
    finally:
        _reports_in_progress[node.pk] -= 1
        if not _reports_in_progress[node.pk]:
            del _reports_in_progress[node.pk]


def pulse(now: datetime, reporting: Collection[int] = ()) -> None:
    """Records that reports are accepted now, and that reports of these nodes are in progress. A gap since the
    last pulse starts a new window."""
    if reporting:
        Node.objects.filter(pk__in=reporting, last_report_at__lt=now).update(last_report_at=now)
    if not Hearing.objects.filter(pk=1, until__gte=now - MAX_PULSE_GAP).update(until=now):
        Hearing.objects.update_or_create(pk=1, defaults={"since": now, "until": now})


@asynccontextmanager
async def pulse_while_serving(_: object) -> AsyncIterator[None]:
    """Lifespan hook of the server that receives reports: it pulses as long as the server runs."""
    task = asyncio.create_task(_pulse_forever())
    yield
    # The last pulse stays as the end of the window: silence does not grow while the hub is down.
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _pulse_forever() -> None:
    while True:
        await sync_to_async(_pulse_once)(tuple(_reports_in_progress))
        await asyncio.sleep(PULSE_S)


def _pulse_once(reporting: Collection[int]) -> None:
    try:
        pulse(timezone.now(), reporting)
    except DatabaseError as error:
        log.warning("The hub could not record that it listens; tried again in %s s: %s", PULSE_S, error)
    finally:
        close_old_connections()
