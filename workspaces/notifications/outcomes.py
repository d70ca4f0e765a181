"""Records the results of deliveries, for each delivery and for its channel: try again later, give up, or
pause."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from workspaces.models import Channel, Delivery
from workspaces.notifications.errors import NotSent

FIRST_PAUSE_S = 30.0
LONGEST_PAUSE_S = 3600.0
TRIED_FOR = timedelta(days=1)


def record(channel: Channel, outcomes: Sequence[tuple[Delivery, NotSent | None]], now: datetime) -> None:
    failed = [(delivery, error) for delivery, error in outcomes if error is not None]
    with transaction.atomic():
        for delivery, error in outcomes:
            _record_delivery(delivery, error, now)
        if len(failed) < len(outcomes):
            _worked(channel, failed[-1][1] if failed else None, now)
        elif failed:
            _failed(channel, failed[-1][1], now)
        else:
            Channel.objects.filter(pk=channel.pk).update(busy_until=None)


def pause(failures: int) -> timedelta:
    """Returns the pause after so many failures in a row."""
    return timedelta(seconds=min(FIRST_PAUSE_S * 2 ** min(failures - 1, 20), LONGEST_PAUSE_S))


def resume(channel: Channel, now: datetime) -> None:
    """Makes the channel due at once, as if it had never failed."""
    Channel.objects.filter(pk=channel.pk).update(
        paused_at=None, failing_since=None, failures=0, last_error="", try_at=now
    )


def _record_delivery(delivery: Delivery, error: NotSent | None, now: datetime) -> None:
    mine = Delivery.objects.filter(pk=delivery.pk)
    tries = delivery.tries + 1
    if error is None:
        mine.update(state="sent", tries=tries, sent_at=now, last_error="")
        return
    is_over = now - delivery.created_at >= TRIED_FOR
    mine.update(
        state="failed" if is_over else "waiting",
        tries=tries,
        last_error=error.message[:300],
        try_at=now + pause(tries),
    )


def _worked(channel: Channel, error: NotSent | None, now: datetime) -> None:
    Channel.objects.filter(pk=channel.pk).update(
        busy_until=None,
        last_sent_at=now,
        failing_since=None,
        failures=0,
        try_at=now,
        last_error=error.message[:300] if error else "",
    )


def _failed(channel: Channel, error: NotSent, now: datetime) -> None:
    since = channel.failing_since or now
    failures = channel.failures + 1
    is_paused = error.is_permanent or now - since >= TRIED_FOR
    Channel.objects.filter(pk=channel.pk).update(
        busy_until=None,
        failing_since=since,
        failures=failures,
        last_error=error.message[:300],
        try_at=now + pause(failures),
        paused_at=now if is_paused else None,
    )
    if is_paused:
        channel.deliveries.filter(state="waiting").update(state="failed", last_error=error.message[:300])
