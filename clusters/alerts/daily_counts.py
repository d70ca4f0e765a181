"""How many alerts fired on each of the last days, as bars of the page of alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone

from clusters.models import Alert
from trainhub_launch.severity import SEVERITIES

DAYS = 30
# The size of the picture that templates/clusters/_alert_days.html draws: STEP for each day, and HEIGHT.
STEP, HEIGHT = 10, 40


@dataclass(frozen=True)
class DailyBar:
    """The part of one severity in a day's bar, in the picture's units."""

    severity: str
    y: float
    height: float


@dataclass(frozen=True)
class DailyCount:
    """The alerts that fired on a day. `counts`: (severity, number), without zeros. `x`: of the day's bars."""

    day: date
    counts: tuple[tuple[str, int], ...]
    x: int
    bars: tuple[DailyBar, ...]


def daily_counts(alerts: QuerySet[Alert]) -> list[DailyCount]:
    """Returns the last DAYS days, today last; an empty list if no alert fired on any of them."""
    first = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS - 1)
    rows = (
        alerts.filter(fired_at__gte=first)
        .order_by()
        .annotate(day=TruncDate("fired_at"))
        .values_list("day", "severity")
        .annotate(Count("pk"))
    )
    numbers = {(day, severity): number for day, severity, number in rows}
    if not numbers:
        return []
    days = [first.date() + timedelta(days=place) for place in range(DAYS)]
    # The most severe stands at the bottom, so that its bars begin at one line.
    counts = [[(word, numbers[day, word]) for word in SEVERITIES if (day, word) in numbers] for day in days]
    highest = max(sum(number for _, number in of_day) for of_day in counts)
    return [
        DailyCount(day, tuple(of_day), place * STEP, _bars(of_day, HEIGHT / highest))
        for place, (day, of_day) in enumerate(zip(days, counts, strict=True))
    ]


def _bars(counts: Sequence[tuple[str, int]], unit: float) -> tuple[DailyBar, ...]:
    bars: list[DailyBar] = []
    top = float(HEIGHT)
    for severity, number in counts:
        top -= number * unit
        bars.append(DailyBar(severity, top, number * unit))
    return tuple(bars)
