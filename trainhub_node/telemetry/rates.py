"""From counters that only grow to what passes in a second."""

from __future__ import annotations

from collections.abc import Mapping


class Rates:
    """Of one quantity that several devices count, such as the bytes that each disk has read."""

    def __init__(self) -> None:
        self._at = 0.0
        self._before: Mapping[str, int] = {}

    def of(self, now: float, counts: Mapping[str, int]) -> float | None:
        """All devices together, per second since the last call. `now`: seconds of a steady clock.

        None where it cannot be told: at first, and where a counter has begun anew (a reset, a device put in
        again)."""
        passed, self._at = now - self._at, now
        before, self._before = self._before, counts
        grown = [count - before[name] for name, count in counts.items() if name in before]
        if not grown or passed <= 0 or min(grown) < 0:
            return None
        return sum(grown) / passed
