"""Numbers, times and sizes as people read them, in the time of this machine."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import Any

NONE = "-"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_GIB = 2**30


def parse_time(text: str | None) -> datetime | None:
    """Returns a time of the hub, in the zone of this machine."""
    if not text:
        return None
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone()


def format_time(text: str | None, now: datetime | None = None) -> str:
    """Returns `18:22` for today, `27 Nov 18:22` within this year, else `27 Nov 2025`."""
    time = parse_time(text)
    if time is None:
        return NONE
    today = (now or datetime.now(timezone.utc)).astimezone()
    if time.date() == today.date():
        return time.strftime("%H:%M")
    return time.strftime("%d %b %H:%M" if time.year == today.year else "%d %b %Y")


def format_duration(seconds: float | None) -> str:
    """Returns `42 s`, `3 m 05 s`, `2 h 10 m` or `3 d 04 h`."""
    if seconds is None:
        return NONE
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} m"
    return f"{whole // 86400} d {whole % 86400 // 3600:02} h"


def run_duration_s(started_at: str | None, finished_at: str | None, now: datetime) -> float | None:
    """Returns how long a run has run, until `now` (by the hub's clock) if it has not ended; None if it has
    not started."""
    start = parse_time(started_at)
    if start is None:
        return None
    end = parse_time(finished_at) or now
    return (end - start).total_seconds()


def format_size(size: float | None) -> str:
    if size is None:
        return NONE
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"


def format_gib(size: float | None) -> str:
    return NONE if size is None else f"{size / _GIB:.0f}"


def format_number(value: Any) -> str:
    """Returns a number with five digits that count, as short as that is."""
    if value is None:
        return NONE
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return str(int(value))
    return f"{value:.5g}" if math.isfinite(value) else str(value)
