"""Points of any step merged into the points that a reader asked for: the mean of means by weight, the maximum
of maxima."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from clusters.telemetry.chunks import Chunk
from clusters.telemetry.slice_codec import Numbers


@dataclass(frozen=True)
class Grid:
    """`points` moments, `step_s` apart, from `start` on; both are multiples of the step."""

    start: int
    step_s: int
    points: int

    @property
    def end(self) -> int:
        return self.start + self.points * self.step_s

    @property
    def times(self) -> npt.NDArray[np.int64]:
        return self.start + self.step_s * np.arange(self.points, dtype=np.int64)


def grid(start: float, end: float, points: int, unit_s: int) -> Grid:
    """The finest one of at most `points` points over the span, whose step is a multiple of `unit_s`."""
    step_s = max(1, -(-(end - start) // (points * unit_s))) * unit_s
    while True:
        step_s = int(step_s)
        first = int(start // step_s)
        count = max(1, int(-(-end // step_s)) - first)
        if count <= points:
            return Grid(first * step_s, step_s, count)
        step_s += unit_s


@dataclass
class Bins:
    """Rows of numbers that gather on a grid."""

    grid: Grid
    rows: int
    total: npt.NDArray[np.float64] = field(init=False)
    weight: npt.NDArray[np.float64] = field(init=False)
    peak: Numbers = field(init=False)

    def __post_init__(self) -> None:
        shape = (self.rows, self.grid.points)
        self.total, self.weight = np.zeros(shape), np.zeros(shape)
        self.peak = np.full(shape, np.nan, np.float32)

    def add(self, chunk: Chunk, rows: Sequence[int]) -> None:
        """Row i of the chunk goes to `rows[i]`. The chunk's step divides the grid's."""
        grid = self.grid
        first = max(0, -(-(grid.start - chunk.start) // chunk.step_s))
        last = min(chunk.points, -(-(grid.end - chunk.start) // chunk.step_s))
        if first >= last or not rows:
            return
        places = (chunk.start + np.arange(first, last) * chunk.step_s - grid.start) // grid.step_s
        edges = np.flatnonzero(np.diff(places, prepend=-1))
        here = places[edges]
        mean, count = chunk.mean[:, first:last], chunk.count[:, first:last].astype(np.float64)
        total = np.add.reduceat(np.where(count > 0, mean, 0) * count, edges, axis=1)
        spot = np.ix_(np.asarray(rows), here)
        self.total[spot] += total
        self.weight[spot] += np.add.reduceat(count, edges, axis=1)
        self.peak[spot] = np.fmax(self.peak[spot], np.fmax.reduceat(chunk.max[:, first:last], edges, axis=1))

    @property
    def mean(self) -> Numbers:
        """NaN where nothing is known."""
        known = self.weight > 0
        return np.where(known, self.total / np.where(known, self.weight, 1), np.nan).astype(np.float32)
