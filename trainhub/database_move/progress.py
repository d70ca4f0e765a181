"""The line that says how far a move is."""

from __future__ import annotations

import time
from collections.abc import Callable

TERMINAL_S, LOG_S = 0.5, 15.0


class RowProgress:
    """`write` gets the line: often on a terminal, where it replaces the one before, else now and then."""

    def __init__(self, verb: str, total: int, write: Callable[[str], None], *, is_terminal: bool) -> None:
        self._verb, self._total, self._write = verb, total, write
        self._every_s = TERMINAL_S if is_terminal else LOG_S
        self._started = self._last = time.monotonic()
        self._rows = self._earlier = 0

    def skip(self, rows: int) -> None:
        """Counts rows of an earlier attempt, which say nothing about the rate."""
        self._rows += rows
        self._earlier += rows

    def advance(self, table: str, rows: int) -> None:
        self._rows += rows
        now = time.monotonic()
        if now - self._last >= self._every_s:
            self._last = now
            self._write(self._line(table, now - self._started))

    def summary(self) -> str:
        seconds = time.monotonic() - self._started
        return f"{self._verb} {self._rows:,} rows in {seconds:.1f} s ({self._rate(seconds):,.0f} per second)."

    def _rate(self, seconds: float) -> float:
        return (self._rows - self._earlier) / max(seconds, 0.001)

    def _line(self, table: str, seconds: float) -> str:
        rate = self._rate(seconds)
        remaining_s = (self._total - self._rows) / max(rate, 0.001)
        return (
            f"{self._verb} {self._rows:,} of {self._total:,} rows ({rate:,.0f} per second, "
            f"{_duration(remaining_s)} left): {table}"
        )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
