"""Waiting longer after every failure, never all nodes at once, never giving up."""

from __future__ import annotations

import random

FIRST_S = 0.1


class Backoff:
    def __init__(self, max_s: float) -> None:
        self._max_s = max_s
        self._failures = 0

    def next_s(self) -> float:
        """Seconds to wait after one more failure."""
        pause_s = min(self._max_s, FIRST_S * 2 ** min(self._failures, 20))
        self._failures += 1
        return pause_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads nodes over time, hides nothing

    def reset(self) -> None:
        self._failures = 0
