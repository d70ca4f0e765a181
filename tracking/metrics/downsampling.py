"""Downsampling that keeps the drawn line: the first, min, max and last point of each pixel column (M4: Jugel
et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014)."""

from __future__ import annotations

import numpy as np

from tracking.metrics.points import FloatArray

# First, last, smallest and largest point of each pixel: a line through them looks the same as one through
# all.
PER_PIXEL = 4


def downsample(x: FloatArray, y: FloatArray, pixels: int) -> tuple[FloatArray, FloatArray]:
    """Returns a subset of the points, in order; `x` must be ascending and `y` finite."""
    indices = sample_indices(x, y, pixels)
    return x[indices], y[indices]


def sample_indices(x: FloatArray, y: FloatArray, pixels: int) -> np.ndarray:
    """Returns the positions of the points that `downsample` keeps, in ascending order."""
    if len(x) <= PER_PIXEL * pixels:
        return np.arange(len(x))
    if x[0] == x[-1]:
        return np.unique([0, int(y.argmin()), int(y.argmax()), len(y) - 1])
    # Without the minimum the last point would lie in one more pixel.
    places = np.minimum(((x - x[0]) * (pixels / (x[-1] - x[0]))).astype(np.int64), pixels - 1)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(places)) + 1))
    # reduceat needs every column to have a point, which `starts` ensures: empty columns do not occur in it.
    ends = np.append(starts[1:], len(x))
    minima, maxima = _extreme(y, starts, ends, np.minimum), _extreme(y, starts, ends, np.maximum)
    return np.unique(np.concatenate((starts, ends - 1, minima, maxima)))


def _extreme(y: FloatArray, starts: np.ndarray, ends: np.ndarray, ufunc: np.ufunc) -> np.ndarray:
    """Returns the index of each column's first minimum (or maximum)."""
    extremes = ufunc.reduceat(y, starts)
    matches = np.flatnonzero(y == np.repeat(extremes, ends - starts))
    columns = np.searchsorted(starts, matches, "right") - 1
    return matches[np.concatenate(([True], np.diff(columns) > 0))]
