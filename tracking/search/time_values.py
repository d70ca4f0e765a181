"""Times as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tracking.search.tokens import UNITS

AGO = re.compile(r"(\d{1,6}(?:\.\d+)?)\s*([a-z]+)\s+ago")


def moment_ms(text: str, now: datetime | None = None) -> int | None:
    """Milliseconds since 1970: of an ISO date or time (UTC where it names no zone), `today`, `yesterday`, `7d
    ago`; else None."""
    now = now or datetime.now(UTC)
    wanted = text.strip().lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if wanted in ("today", "yesterday", "now"):
        return _ms({"today": midnight, "yesterday": midnight - timedelta(days=1), "now": now}[wanted])
    if match := AGO.fullmatch(wanted):
        seconds = UNITS.get(match[2])
        return None if seconds is None else _ms(now) - int(float(match[1]) * seconds * 1000)
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return _ms(at if at.tzinfo else at.replace(tzinfo=UTC))


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
