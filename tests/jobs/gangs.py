"""What tests of several nodes ask again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.utils import timezone

from clusters import wakeups
from clusters.models import Hearing, Lease, Node
from clusters.node_reports import hub_uptime
from jobs.models import Member, Run


def woken(callbacks: Iterable[Callable[..., Any]]) -> list[str]:
    """The nodes that these callbacks of a transaction would wake."""
    return sorted(
        item.args[0].name for item in callbacks if isinstance(item, partial) and item.func is wakeups.wake
    )


def state_of(run: Run) -> tuple[str, str]:
    run.refresh_from_db()
    return run.state, run.sentence


def members(run: Run, attempt: int = 1) -> list[str]:
    return list(
        Member.objects.filter(attempt__run=run, attempt__number=attempt).values_list("state", flat=True)
    )


def told(run: Run) -> list[str]:
    return list(run.events.values_list("message", flat=True))


def held() -> list[tuple[str, int]]:
    """Node and attempt of every lease that is not released."""
    return sorted(Lease.objects.filter(released_at=None).values_list("node__name", "attempt"))


def later(seconds: float) -> datetime:
    """A moment up to which the hub has listened all the time."""
    now = timezone.now()
    hub_uptime.pulse(now - timedelta(days=1))
    then = now + timedelta(seconds=seconds)
    Hearing.objects.update(since=now - timedelta(days=1), until=then)
    return then


def heard_at(then: datetime, *names: str) -> None:
    """These nodes have reported up to that moment."""
    Node.objects.filter(name__in=names).update(last_report_at=then)
