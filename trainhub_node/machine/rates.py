"""Rates per second from counters that only grow."""

from __future__ import annotations

from collections.abc import Mapping


class RateMeter:
    """The rate of one quantity that several devices count, such as the bytes read by each disk."""

    def __init__(self) -> None:
        self._at = 0.0
        self._previous: Mapping[str, int] = {}

    def rate(self, now: float, counts: Mapping[str, int]) -> float | None:
        """Returns the sum over all devices per second since the last call. `now`: seconds of a steady clock.

        Returns None on the first call, and when a counter started again (a reset, a replaced device)."""
        elapsed_s, self._at = now - self._at, now
        previous, self._previous = self._previous, counts
        increments = [count - previous[name] for name, count in counts.items() if name in previous]
        if not increments or elapsed_s <= 0 or min(increments) < 0:
            return None
        return sum(increments) / elapsed_s
