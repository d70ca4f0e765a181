"""Getting deliveries out: all channels side by side, each in its own time, and none for long.

A tick takes one thread of the worker for at most some seconds, whatever the receivers do: every request runs
in one event loop of its own thread, bounded in all, and a channel that fails waits longer each time."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from django.db.models import Exists, OuterRef, Q

from workspaces.models import Channel, Delivery
from workspaces.notifications import email_message, outbox, webhook
from workspaces.notifications.errors import NotSent
from workspaces.notifications.outcomes import record

log = logging.getLogger(__name__)
MOST_CHANNELS = 100
MOST_EACH = 50
ROUND_S = 8.0
"""After that a channel's further deliveries wait for the next round."""
LONGEST_S = 30.0
BUSY = timedelta(seconds=60)
"""A worker that died while it sent is waited for so long."""
KEPT_DAYS = 30
_ticking = threading.Lock()


@dataclass(frozen=True)
class Sent:
    """`error` None: it arrived."""

    delivery: Delivery
    error: NotSent | None


def tick(now: datetime) -> int:
    """Send what is due; how many went out. Returns at once while another tick of this process is at it."""
    if not _ticking.acquire(blocking=False):
        return 0
    try:
        return _tick(now)
    finally:
        _ticking.release()


def forget(now: datetime) -> None:
    """Delete what was sent, or given up, long ago."""
    Delivery.objects.exclude(state="waiting").filter(created_at__lt=now - timedelta(days=KEPT_DAYS)).delete()


def _tick(now: datetime) -> int:
    work = [(channel, _due(channel, now)) for channel in _claimed(now)]
    if not work:
        return 0
    rounds = asyncio.run_coroutine_threadsafe(_all(work), _loop()).result(LONGEST_S)
    for (channel, _), outcomes in zip(work, rounds, strict=True):
        record(channel, [(item.delivery, item.error) for item in outcomes], now)
    return sum(item.error is None for outcomes in rounds for item in outcomes)


def _claimed(now: datetime) -> list[Channel]:
    """Channels with something due, those that work first; of two workers one gets each."""
    waiting = Delivery.objects.filter(channel=OuterRef("pk"), state="waiting", try_at__lte=now)
    free = Q(busy_until=None) | Q(busy_until__lt=now)
    due = (
        outbox.of_members()
        .filter(Exists(waiting), free, paused_at=None, try_at__lte=now)
        .order_by("failures", "try_at")
    )
    return [
        channel
        for channel in due[:MOST_CHANNELS]
        if Channel.objects.filter(free, pk=channel.pk).update(busy_until=now + BUSY)
    ]


def _due(channel: Channel, now: datetime) -> list[Delivery]:
    return list(channel.deliveries.filter(state="waiting", try_at__lte=now).order_by("pk")[:MOST_EACH])


async def _all(work: Sequence[tuple[Channel, Sequence[Delivery]]]) -> list[list[Sent]]:
    return list(await asyncio.gather(*(_round(channel, deliveries) for channel, deliveries in work)))


async def _round(channel: Channel, deliveries: Sequence[Delivery]) -> list[Sent]:
    """In order; not further once the channel is away or its time is over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + ROUND_S
    done: list[Sent] = []
    for delivery in deliveries:
        error = await _send(channel, delivery)
        done.append(Sent(delivery, error))
        if loop.time() >= until or (error is not None and (error.is_away or error.is_gone)):
            break
    return done


async def _send(channel: Channel, delivery: Delivery) -> NotSent | None:
    try:
        if channel.kind == "mail":
            await email_message.send(channel.target, delivery.body)
        else:
            await webhook.send(channel.target, channel.secret, delivery.body, delivery.pk)
    except NotSent as error:
        return error
    except Exception:
        log.exception("Delivery %s of channel %s failed", delivery.pk, channel.pk)
        return NotSent("TrainHub itself failed; the operator finds the traceback in the worker's log.")
    return None


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    # Names are looked up in threads: as many as channels may be at it, so that a slow server for one holds up
    # no other.
    loop.set_default_executor(ThreadPoolExecutor(MOST_CHANNELS, "notify"))
    threading.Thread(target=loop.run_forever, name="notify", daemon=True).start()
    return loop
