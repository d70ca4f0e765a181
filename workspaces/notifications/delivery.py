"""Sends deliveries: all channels in parallel, each with its own pauses and limits.

A tick occupies one thread of the worker for at most some seconds, whatever the receivers do: every request
runs in one event loop with a thread of its own and has a time limit, and a channel that fails waits longer
each time."""

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
from django.utils.module_loading import import_string

from workspaces.models import Channel, Delivery
from workspaces.notifications import email_message, outbox
from workspaces.notifications.errors import NotSent
from workspaces.notifications.outcomes import record
from workspaces.secrets import placeholders, uses
from workspaces.secrets.errors import SecretsUnavailable

log = logging.getLogger(__name__)
MAX_CHANNELS = 100
MAX_EACH = 50
# After so many seconds the further deliveries of a channel wait for the next tick.
ROUND_S = 8.0
LONGEST_S = 30.0
# A channel that a worker has claimed is free again after this time, in case the worker has died.
BUSY = timedelta(seconds=60)
RETENTION_DAYS = 30
_ticking = threading.Lock()


@dataclass(frozen=True)
class Addressed:
    """A channel with the address and the signing secret in plain text. `error`: why they are not known."""

    channel: Channel
    target: str
    secret: str
    error: NotSent | None = None


@dataclass(frozen=True)
class Sent:
    """The result of one try. `error` None: the message has arrived."""

    delivery: Delivery
    error: NotSent | None


def tick(now: datetime) -> int:
    """Sends what is due; returns how many messages were sent. Returns 0 at once while another tick of this
    process runs."""
    if not _ticking.acquire(blocking=False):
        return 0
    try:
        return _tick(now)
    finally:
        _ticking.release()


def forget(now: datetime) -> None:
    """Deletes deliveries that were sent or given up, and are older than RETENTION_DAYS."""
    Delivery.objects.exclude(state="waiting").filter(
        created_at__lt=now - timedelta(days=RETENTION_DAYS)
    ).delete()


def _tick(now: datetime) -> int:
    if not Delivery.objects.filter(state="waiting", try_at__lte=now).exists():
        return 0  # the usual case, at a fifth of the cost of the query for channels
    work = [(_addressed(channel), _due(channel, now)) for channel in _claimed(now)]
    if not work:
        return 0
    rounds = asyncio.run_coroutine_threadsafe(_all(work), _loop()).result(LONGEST_S)
    for (addressed, _), outcomes in zip(work, rounds, strict=True):
        record(addressed.channel, [(item.delivery, item.error) for item in outcomes], now)
    return sum(item.error is None for outcomes in rounds for item in outcomes)


def _claimed(now: datetime) -> list[Channel]:
    """Returns channels with due deliveries, working ones first. Each is claimed, so that no other worker
    sends it."""
    waiting = Delivery.objects.filter(channel=OuterRef("pk"), state="waiting", try_at__lte=now)
    free = Q(busy_until=None) | Q(busy_until__lt=now)
    due = (
        outbox.of_members()
        .filter(Exists(waiting), free, paused_at=None, try_at__lte=now)
        .order_by("failures", "try_at")
    )
    return [
        channel
        for channel in due[:MAX_CHANNELS]
        # The condition is part of the UPDATE: of two workers that read the same row only one changes it.
        if Channel.objects.filter(free, pk=channel.pk).update(busy_until=now + BUSY)
    ]


def _due(channel: Channel, now: datetime) -> list[Delivery]:
    return list(channel.deliveries.filter(state="waiting", try_at__lte=now).order_by("pk")[:MAX_EACH])


def _addressed(channel: Channel) -> Addressed:
    """Returns the channel with its secrets. Reads the database, so that sending need not."""
    names = placeholders.names_in(channel.target, channel.secret)
    if not names:
        return Addressed(channel, channel.target, channel.secret)
    try:
        values = uses.take(channel.workspace, channel.user, names, uses.WEBHOOK, channel.name)
    except SecretsUnavailable as error:
        text = f"{error.message[:1].upper()}{error.message[1:]}."
        return Addressed(channel, "", "", NotSent(text, is_away=True))
    target, secret = (placeholders.fill(text, values) for text in (channel.target, channel.secret))
    return Addressed(channel, target, secret)


async def _all(work: Sequence[tuple[Addressed, Sequence[Delivery]]]) -> list[list[Sent]]:
    return list(await asyncio.gather(*(_round(addressed, deliveries) for addressed, deliveries in work)))


async def _round(addressed: Addressed, deliveries: Sequence[Delivery]) -> list[Sent]:
    """Sends the deliveries of a channel in order, until one fails because the channel is unreachable, or the
    time is over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + ROUND_S
    done: list[Sent] = []
    for delivery in deliveries:
        error = addressed.error or await _send(addressed, delivery)
        done.append(Sent(delivery, error))
        if loop.time() >= until or (error is not None and (error.is_away or error.is_permanent)):
            break
    return done


async def _send(addressed: Addressed, delivery: Delivery) -> NotSent | None:
    try:
        if addressed.channel.kind == "mail":
            await email_message.send(addressed.target, delivery.body)
        else:
            # Imported only here: the HTTP client takes 10 MiB, which a hub without webhooks saves.
            send = import_string("workspaces.notifications.webhook.send")
            await send(addressed.target, addressed.secret, delivery.body, delivery.pk)
    except NotSent as error:
        return error
    except Exception:
        log.exception("Delivery %s of channel %s failed", delivery.pk, addressed.channel.pk)
        return NotSent("TrainHub itself failed; the operator finds the traceback in the worker's log.")
    return None


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    # Names are looked up in threads: as many as channels may be at it, so that a slow server for one holds up
    # no other.
    loop.set_default_executor(ThreadPoolExecutor(MAX_CHANNELS, "notify"))
    threading.Thread(target=loop.run_forever, name="notify", daemon=True).start()
    return loop
