"""How long runs lately took from their submission to their first rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import quantiles

from django.db.models import Max, Min
from prometheus_client.core import GaugeMetricFamily, Metric

from jobs.models import Attempt, AttemptNode, Member

# Attempts are looked at from the newest, so that the number of all runs does not matter.
MAX_ATTEMPTS = 500
WITHIN = timedelta(hours=1)


@dataclass(frozen=True)
class StepDelay:
    """A step of a launch in the last hour, at most the last 500 attempts. In seconds; None: nothing passed
    it."""

    name: str
    meaning: str
    count: int
    median_s: float | None
    p99_s: float | None


@dataclass(frozen=True)
class _Times:
    submitted: datetime | None
    placed: datetime
    claimed: datetime | None
    started: datetime | None


def launch_delays(now: datetime) -> list[StepDelay]:
    """Returns the steps of a launch in their order. First attempts alone wait from a submission."""
    times = _times(now)
    return [
        _step("queue", "submitted → placed on nodes; includes the wait for free GPUs", map(_queued, times)),
        _step("claim", "placed → claimed by its last node", map(_claim, times)),
        _step("prepare", "claimed → first rank started", map(_preparation, times)),
    ]


def delay_metrics(now: datetime) -> Iterator[Metric]:
    gauge = GaugeMetricFamily(
        "trainhub_launch_delay_seconds",
        "Duration of a step of the launches of the last hour.",
        labels=("step", "quantile"),
    )
    for step in launch_delays(now):
        for share, value in (("0.5", step.median_s), ("0.99", step.p99_s)):
            if value is not None:
                gauge.add_metric((step.name, share), value)
    yield gauge


def _times(now: datetime) -> list[_Times]:
    newest = Attempt.objects.order_by("-pk").select_related("run")
    attempts = [
        attempt
        for attempt in newest.only("number", "created_at", "run__created_at")[:MAX_ATTEMPTS]
        if attempt.created_at > now - WITHIN
    ]
    parts = AttemptNode.objects.filter(attempt__in=attempts).values_list("attempt")
    ranks = Member.objects.filter(attempt__in=attempts).values_list("attempt")
    claimed, started = dict(parts.annotate(Max("claimed_at"))), dict(ranks.annotate(Min("started_at")))
    return [
        _Times(
            attempt.run.created_at if attempt.number == 1 else None,
            attempt.created_at,
            claimed.get(attempt.pk),
            started.get(attempt.pk),
        )
        for attempt in attempts
    ]


def _queued(one: _Times) -> float | None:
    return _between(one.submitted, one.placed)


def _claim(one: _Times) -> float | None:
    return _between(one.placed, one.claimed)


def _preparation(one: _Times) -> float | None:
    return _between(one.claimed, one.started)


def _between(begin: datetime | None, end: datetime | None) -> float | None:
    # Ranks start by the clock of their node, which may differ a little.
    return max(0.0, (end - begin).total_seconds()) if begin and end else None


def _step(name: str, meaning: str, delays: Iterable[float | None]) -> StepDelay:
    values = [delay for delay in delays if delay is not None]
    if not values:
        return StepDelay(name, meaning, 0, None, None)
    cuts = quantiles(values, n=100, method="inclusive") if len(values) > 1 else [values[0]] * 99
    return StepDelay(name, meaning, len(values), cuts[49], cuts[98])
