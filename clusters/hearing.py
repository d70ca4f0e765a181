"""When the hub could hear: silence of a node counts only while the hub's server was there to be told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
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


@dataclass(frozen=True)
class Heard:
    """The span that `silence` is measured in; `until` None = up to now."""

    since: datetime
    until: datetime | None

    def silence(self, node: Node, now: datetime) -> timedelta:
        """How long the node has had nothing to say while somebody listened."""
        until = self.until or now
        begin = max(self.since, node.last_report_at or self.since)
        return max(until - begin, timedelta(0))


def heard(now: datetime) -> Heard:
    """The present span. Without any pulse yet, this process's own life."""
    row = Hearing.objects.filter(pk=1).first()
    if row is None:
        return Heard(_PROCESS_STARTED, None)
    # A server that stopped pulsing hears nobody: time stands still until it is back.
    return Heard(row.since, row.until if now - row.until > GAP else None)


def pulse(now: datetime) -> None:
    """Say that reports can be taken now. A gap since the last pulse begins a new span."""
    if not Hearing.objects.filter(pk=1, until__gte=now - GAP).update(until=now):
        Hearing.objects.update_or_create(pk=1, defaults={"since": now, "until": now})


@asynccontextmanager
async def listening(_: object) -> AsyncIterator[None]:
    """The lifespan of the server that takes the reports: it pulses as long as it lives."""
    pulsing = asyncio.create_task(_keep_pulsing())
    yield
    pulsing.cancel()
    with suppress(asyncio.CancelledError):
        await pulsing


async def _keep_pulsing() -> None:
    while True:
        await sync_to_async(_pulse_once)()
        await asyncio.sleep(PULSE_S)


def _pulse_once() -> None:
    try:
        pulse(timezone.now())
    except DatabaseError:
        log.exception("The hub could not note that it listens; the next try is in %s s", PULSE_S)
    finally:
        close_old_connections()
