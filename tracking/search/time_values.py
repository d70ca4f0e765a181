"""Parses times as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tracking.search.tokens import UNITS

AGO = re.compile(r"(\d{1,6}(?:\.\d+)?)\s*([a-z]+)\s+ago")


def parse_time_ms(text: str, now: datetime | None = None) -> int | None:
    """Returns Unix milliseconds for an ISO date or time (UTC without a zone), `today`, `yesterday`, `now` or
    `7d ago`; None for other text."""
    now = now or datetime.now(UTC)
    word = text.strip().lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if word in ("today", "yesterday", "now"):
        return _unix_ms({"today": midnight, "yesterday": midnight - timedelta(days=1), "now": now}[word])
    if match := AGO.fullmatch(word):
        seconds = UNITS.get(match[2])
        return None if seconds is None else _unix_ms(now) - int(float(match[1]) * seconds * 1000)
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return _unix_ms(at if at.tzinfo else at.replace(tzinfo=UTC))


def _unix_ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
