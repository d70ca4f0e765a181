"""Months of UTC, in which usage is counted. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime


def month_of(moment: datetime) -> date:
    """The first day of its month."""
    return moment.astimezone(UTC).date().replace(day=1)


def after(month: date, count: int = 1) -> date:
    """The month so many later (negative: earlier)."""
    years, place = divmod(month.month - 1 + count, 12)
    return date(month.year + years, place + 1, 1)


def split(start: datetime, end: datetime) -> Iterator[tuple[date, float, float]]:
    """Each month of the span with the part that lies in it, in Unix seconds. Of an empty span one empty
    part."""
    month = month_of(start)
    while True:
        following = datetime.combine(after(month), datetime.min.time(), UTC)
        yield month, max(start, _begin(month)).timestamp(), min(end, following).timestamp()
        if following >= end:
            return
        month = after(month)


def spelled(text: str) -> date | None:
    """The month that `2026-07` names; None where it names none."""
    try:
        return datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC).date()
    except ValueError:
        return None


def _begin(month: date) -> datetime:
    return datetime.combine(month, datetime.min.time(), UTC)
