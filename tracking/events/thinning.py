"""Chooses which of too many steps stay."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def surplus_steps(steps: Iterable[int], most: int) -> set[int]:
    """Returns the steps to drop, so that at most `most` stay. The first and the last always stay, and the
    others are spread evenly between them, also if this is called again each time that some are added."""
    ordered = sorted(set(steps))
    rest = list(ordered)
    if len(rest) > 2 * most:
        # One by one would take too long.
        even = np.linspace(rest[0], rest[-1], 2 * most)
        rest = [rest[place] for place in sorted(set(np.searchsorted(rest, even).tolist()))]
    while len(rest) > most:
        # The step whose neighbours are closest to each other.
        gaps = [after - before for before, after in zip(rest, rest[2:], strict=False)]
        del rest[1 + gaps.index(min(gaps))]
    return set(ordered) - set(rest)
