"""When the hub could hear: silence of a node counts only while the hub's server was there to be told."""

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
from django.utils import timezone

from clusters.models import Hearing, Node

log = logging.getLogger(__name__)
PULSE_S = 5.0
GAP = timedelta(seconds=3 * PULSE_S)
_PROCESS_STARTED = timezone.now()
_talking: Counter[int] = Counter()
_seen: tuple[float, ListeningWindow | None] = (float("-inf"), None)


@dataclass(frozen=True)
class ListeningWindow:
    """The span that `silence` is measured in; `until` None = up to now."""

    since: datetime
    until: datetime | None

    def silence(self, node: Node, now: datetime) -> timedelta:
        """How long the node has had nothing to say while somebody listened."""
        until = self.until or now
        begin = max(self.since, node.last_report_at or self.since)
        return max(until - begin, timedelta(0))


def listening_window(now: datetime) -> ListeningWindow:
    """The present span. Without any pulse yet, this process's own life."""
    row = Hearing.objects.filter(pk=1).first()
    if row is None:
        return ListeningWindow(_PROCESS_STARTED, None)
    # A server that stopped pulsing hears nobody: time stands still until it is back.
    return ListeningWindow(row.since, row.until if now - row.until > GAP else None)


def cached_window() -> ListeningWindow | None:
    """The same as this process has last seen it, without asking; None where it has not looked for a while."""
    seen_at, span = _seen
    return span if time.monotonic() - seen_at < PULSE_S else None


def refresh() -> None:
    """A round."""
    global _seen  # noqa: PLW0603 - one tuple, replaced whole
    _seen = time.monotonic(), listening_window(timezone.now())


@contextmanager
def report_in_progress(node: Node) -> Iterator[None]:
    """While the node's report is here and waits for its turn: a hub that is behind has heard it all the
    same."""
    _talking[node.pk] += 1
    try:
        yield
    finally:
        _talking[node.pk] -= 1
        if not _talking[node.pk]:
            del _talking[node.pk]


def pulse(now: datetime, heard_now: Collection[int] = ()) -> None:
    """Say that reports can be taken now, and that these nodes are being heard. A gap since the last pulse
    begins a new span."""
    if heard_now:
        Node.objects.filter(pk__in=heard_now, last_report_at__lt=now).update(last_report_at=now)
    if not Hearing.objects.filter(pk=1, until__gte=now - GAP).update(until=now):
        Hearing.objects.update_or_create(pk=1, defaults={"since": now, "until": now})


@asynccontextmanager
async def pulse_while_serving(_: object) -> AsyncIterator[None]:
    """The lifespan of the server that takes the reports: it pulses as long as it lives."""
    pulsing = asyncio.create_task(_keep_pulsing())
    yield
    pulsing.cancel()
    with suppress(asyncio.CancelledError):
        await pulsing


async def _keep_pulsing() -> None:
    while True:
        await sync_to_async(_pulse_once)(tuple(_talking))
        await asyncio.sleep(PULSE_S)


def _pulse_once(heard_now: Collection[int]) -> None:
    try:
        pulse(timezone.now(), heard_now)
    except DatabaseError:
        log.exception("The hub could not note that it listens; the next try is in %s s", PULSE_S)
    finally:
        close_old_connections()
