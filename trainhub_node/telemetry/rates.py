"""From counters that only grow to what passes in a second."""

from __future__ import annotations

from collections.abc import Mapping


class RateMeter:
    """Of one quantity that several devices count, such as the bytes that each disk has read."""

    def __init__(self) -> None:
        self._at = 0.0
        self._previous: Mapping[str, int] = {}

    def rate(self, now: float, counts: Mapping[str, int]) -> float | None:
        """All devices together, per second since the last call. `now`: seconds of a steady clock.

        None where it cannot be told: at first, and where a counter has begun anew (a reset, a device put in
        again)."""
        elapsed_s, self._at = now - self._at, now
        previous, self._previous = self._previous, counts
        increments = [count - previous[name] for name, count in counts.items() if name in previous]
        if not increments or elapsed_s <= 0 or min(increments) < 0:
            return None
        return sum(increments) / elapsed_s
