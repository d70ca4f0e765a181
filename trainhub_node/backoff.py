"""Pauses that grow after every failure and vary at random, so that nodes do not retry at the same moment."""

from __future__ import annotations

import random

FIRST_S = 0.1


class Backoff:
    """A pause of 0.1 s, doubled after each failure up to `max_s`."""

    def __init__(self, max_s: float) -> None:
        self._max_s = max_s
        self._failures = 0

    def next_s(self) -> float:
        """Returns the seconds to wait after one more failure."""
        pause_s = min(self._max_s, FIRST_S * 2.0 ** min(self._failures, 20))
        self._failures += 1
        return pause_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads nodes over time, hides nothing

    def reset(self) -> None:
        self._failures = 0
