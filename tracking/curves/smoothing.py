"""TensorBoard's exponential moving average, over all points and not only the drawn ones."""

from __future__ import annotations

import math

import numpy as np

from tracking.metrics.points import FloatArray

# Lower bound of the factors in a block, so that divisions by them stay finite.
_MIN_FACTOR = 1e-100
_MIN_WEIGHT = 0.001


def moving_average(values: FloatArray, weight: float) -> FloatArray:
    """Returns the debiased moving average of finite values; `weight` is from 0 (no smoothing) to below 1.

    s[n] = (1-w) * sum of w^(n-k) * v[k], over 1 - w^(n+1): computed block by block with cumulative sums,
    because a loop over a million points would be too slow.
    """
    if weight <= _MIN_WEIGHT or len(values) < 2:
        return values
    # Beyond this length the powers of the weight would become too small for a division.
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
    # Without this the average would begin near 0 (debiasing as in Adam and TensorBoard).
    return result / (1 - weight**counts)
