"""Chooses which of too many steps stay."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def surplus_steps(steps: Iterable[int], most: int) -> set[int]:
    """Returns the steps to drop, so that at most `most` stay. The first and the last always stay, and the
    others are spread evenly between them, also if this is called again each time that some are added."""
    ordered = sorted(set(steps))
    kept = list(ordered)
    if len(kept) > 2 * most:
        # One by one would take too long.
        wanted = np.linspace(kept[0], kept[-1], 2 * most)
        kept = [kept[place] for place in sorted(set(np.searchsorted(kept, wanted).tolist()))]
    while len(kept) > most:
        # The step whose neighbours are closest to each other.
        gaps = [after - before for before, after in zip(kept, kept[2:], strict=False)]
        del kept[1 + gaps.index(min(gaps))]
    return set(ordered) - set(kept)
