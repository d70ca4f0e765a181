"""The exponential moving average that people know from TensorBoard, of all points and not only of those that
are drawn."""

from __future__ import annotations

import math

import numpy as np

from tracking.metrics.points import FloatArray

_MIN_FACTOR = 1e-100
"""In a block no factor becomes smaller than this: what is divided by it stays a number."""
_MIN_WEIGHT = 0.001


def moving_average(values: FloatArray, weight: float) -> FloatArray:
    """Of finite values in their order; `weight` 0 (nothing) to below 1. The first ones are not drawn towards
    0 (debiased).

    s[n] = (1-w) * sum of w^(n-k) * v[k], over 1 - w^(n+1): block by block as cumulative sums, because a loop
    over a million points takes as long as the answer may."""
    if weight <= _MIN_WEIGHT or len(values) < 2:
        return values
    length = max(1, min(len(values), int(math.log(_MIN_FACTOR) / math.log(weight))))
    factors = weight ** np.arange(length, dtype=np.float64)
    result = np.empty_like(values)
    previous = 0.0
    for start in range(0, len(values), length):
        block = values[start : start + length]
        powers = factors[: len(block)]
        sums = np.cumsum(block / powers) * powers * (1 - weight) + previous * weight * powers
        result[start : start + length] = sums
        previous = float(sums[-1])
    counts = np.arange(1, len(values) + 1, dtype=np.float64)
    return result / (1 - weight**counts)
