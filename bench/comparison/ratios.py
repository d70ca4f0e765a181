"""How much longer one of two things takes than the other, from pairs of measurements."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

RESAMPLES = 10_000
SEED = 1


@dataclass(frozen=True)
class Ratio:
    """The geometric mean of new divided by old, and the bounds of its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} (95 %: {self.low:.3f} to {self.high:.3f})"


def ratio(old: Sequence[float], new: Sequence[float]) -> Ratio:
    """Of pairs, by bootstrap: the interval is that of the means of pairs drawn again and again, each with the
    same chance."""
    logs = [math.log(ours / theirs) for theirs, ours in zip(old, new, strict=True)]
    numbers = random.Random(SEED)
    means = sorted(statistics.fmean(numbers.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
    low, high = means[int(RESAMPLES * 0.025)], means[int(RESAMPLES * 0.975)]
    return Ratio(math.exp(statistics.fmean(logs)), math.exp(low), math.exp(high))
