"""Fewer points that draw the same line: of each pixel's column the first, the least, the greatest and the
last (M4: Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014)."""

from __future__ import annotations

import numpy as np

from tracking.metrics.points import Real

PER_PIXEL = 4


def thinned(x: Real, y: Real, pixels: int) -> tuple[Real, Real]:
    """`x` ascending, `y` finite; what comes back is some of the points, in their order."""
    if len(x) <= PER_PIXEL * pixels or x[0] == x[-1]:
        return _of_one_place(x, y, pixels) if len(x) and x[0] == x[-1] else (x, y)
    places = np.minimum(((x - x[0]) * (pixels / (x[-1] - x[0]))).astype(np.int64), pixels - 1)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(places)) + 1))
    ends = np.append(starts[1:], len(x))
    least, greatest = _extreme(y, starts, ends, np.minimum), _extreme(y, starts, ends, np.maximum)
    chosen = np.unique(np.concatenate((starts, ends - 1, least, greatest)))
    return x[chosen], y[chosen]


def _extreme(y: Real, starts: np.ndarray, ends: np.ndarray, ufunc: np.ufunc) -> np.ndarray:
    """The place of each column's first least (or greatest) value."""
    found = ufunc.reduceat(y, starts)
    hits = np.flatnonzero(y == np.repeat(found, ends - starts))
    columns = np.searchsorted(starts, hits, "right") - 1
    return hits[np.concatenate(([True], np.diff(columns) > 0))]


def _of_one_place(x: Real, y: Real, pixels: int) -> tuple[Real, Real]:
    if len(x) <= PER_PIXEL * pixels:
        return x, y
    chosen = np.unique([0, int(y.argmin()), int(y.argmax()), len(y) - 1])
    return x[chosen], y[chosen]
