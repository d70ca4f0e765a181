"""The span of time that a page shows, as its address says it; static/js/charts/range.js reads and writes the
same."""

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


@dataclass(frozen=True)
class TimeSpan:
    """Unix seconds."""

    start: float
    end: float


def read_span(asked: Mapping[str, str], now: float) -> TimeSpan:
    """`?from=…&to=…`, or `?range=6h` up to now; the usual one for anything else."""
    start, end = _seconds(asked.get("from", "")), _seconds(asked.get("to", ""))
    if start is not None and end is not None and start < end:
        return TimeSpan(start, end)
    return TimeSpan(now - SPANS_S.get(asked.get("range", DEFAULT_RANGE), SPANS_S[DEFAULT_RANGE]), now)


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 2**40 else None
