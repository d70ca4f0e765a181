"""Computes how long to wait before the broker is tried again."""

from __future__ import annotations

import time

FIRST_S = 0.5
MAX_S = 10.0
# After so many seconds without a failure the pause starts anew at FIRST_S.
STEADY_S = 30.0


class Pause:
    """A pause that doubles with each failure, up to MAX_S."""

    def __init__(self) -> None:
        self._last_failure = float("-inf")
        self._seconds = 0.0

    def after_failure(self) -> float:
        """Counts a failure and returns the seconds to wait."""
        now = time.monotonic()
        self._seconds = FIRST_S if now - self._last_failure > STEADY_S else min(MAX_S, 2 * self._seconds)
        self._last_failure = now
        return self._seconds
