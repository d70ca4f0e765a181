"""Months in UTC, by which usage is accounted. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime


def month_of(moment: datetime) -> date:
    """Returns the first day of the month."""
    # UTC everywhere, so that a month is the same for people in different time zones.
    return moment.astimezone(UTC).date().replace(day=1)


def add_months(month: date, count: int = 1) -> date:
    """Returns the month `count` months later; earlier if negative."""
    years, place = divmod(month.month - 1 + count, 12)
    return date(month.year + years, place + 1, 1)


def split_by_month(start: datetime, end: datetime) -> Iterator[tuple[date, float, float]]:
    """Yields each month of the span with its part, as Unix seconds; an empty span yields one empty part."""
    month = month_of(start)
    while True:
        next_month = datetime.combine(add_months(month), datetime.min.time(), UTC)
        yield month, max(start, _begin(month)).timestamp(), min(end, next_month).timestamp()
        if next_month >= end:
            return
        month = add_months(month)


def parse_month(text: str) -> date | None:
    """Returns the month of a text such as `2026-07`, or None."""
    try:
        return datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC).date()
    except ValueError:
        return None


def _begin(month: date) -> datetime:
    return datetime.combine(month, datetime.min.time(), UTC)
