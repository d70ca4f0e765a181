"""The time span that a page shows, from its address; static/js/charts/range.js uses the same parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SPANS_S = {"15m": 900, "1h": 3600, "6h": 21_600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000}
PRESETS = (
    ("15m", "15 minutes"),
    ("1h", "hour"),
    ("6h", "6 hours"),
    ("24h", "24 hours"),
    ("7d", "7 days"),
    ("30d", "30 days"),
)
DEFAULT_RANGE = "1h"
# 1 January 9999. Python's dates end with that year, and a time zone must not carry a time beyond it.
MAX_UNIX_S = 253_370_764_800


@dataclass(frozen=True)
class TimeSpan:
    """A time span in Unix seconds."""

    start: float
    end: float


def read_time_range(query: Mapping[str, str], now: float) -> TimeSpan:
    """Returns the span of `?from=…&to=…`, or of `?range=6h` up to now; the default range otherwise."""
    start, end = _seconds(query.get("from", "")), _seconds(query.get("to", ""))
    if start is not None and end is not None and start < end:
        return TimeSpan(start, end)
    return TimeSpan(now - SPANS_S.get(query.get("range", DEFAULT_RANGE), SPANS_S[DEFAULT_RANGE]), now)


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < MAX_UNIX_S else None
