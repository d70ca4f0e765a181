"""Merges points of any step into the points of a grid: weighted means of means, and maxima of maxima."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from clusters.telemetry.chunks import Chunk
from clusters.telemetry.slice_codec import Numbers


@dataclass(frozen=True)
class Grid:
    """`points` moments that are `step_s` apart. `start` (Unix seconds) is a multiple of `step_s`."""

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
    """Returns the finest grid over the span with at most `points` points and a step that is a multiple of
    `unit_s`."""
    # -(-a // b) rounds up.
    step_s = max(1, -(-(end - start) // (points * unit_s))) * unit_s
    # Aligning the ends to multiples of the step may need one more point than the span alone.
    while True:
        step_s = int(step_s)
        first = int(start // step_s)
        count = max(1, int(-(-end // step_s)) - first)
        if count <= points:
            return Grid(first * step_s, step_s, count)
        step_s += unit_s


@dataclass
class Bins:
    """Sums, weights and maxima of `rows` metrics on a grid, as matrices [row][point]."""

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
        """Merges a chunk into the bins: row i of the chunk into row `rows[i]`. The chunk's step must divide
        the grid's."""
        grid = self.grid
        first = max(0, -(-(grid.start - chunk.start) // chunk.step_s))
        last = min(chunk.points, -(-(grid.end - chunk.start) // chunk.step_s))
        if first >= last or not rows:
            return
        bin_of_point = (chunk.start + np.arange(first, last) * chunk.step_s - grid.start) // grid.step_s
        # Points are sorted, so those of one bin are neighbours, and reduceat sums each run of them.
        edges = np.flatnonzero(np.diff(bin_of_point, prepend=-1))
        touched_bins = bin_of_point[edges]
        mean, count = chunk.mean[:, first:last], chunk.count[:, first:last].astype(np.float64)
        total = np.add.reduceat(np.where(count > 0, mean, 0) * count, edges, axis=1)
        target = np.ix_(np.asarray(rows), touched_bins)
        self.total[target] += total
        self.weight[target] += np.add.reduceat(count, edges, axis=1)
        self.peak[target] = np.fmax(
            self.peak[target], np.fmax.reduceat(chunk.max[:, first:last], edges, axis=1)
        )

    @property
    def mean(self) -> Numbers:
        """Returns the weighted means, NaN for points without values."""
        has_value = self.weight > 0
        return np.where(has_value, self.total / np.where(has_value, self.weight, 1), np.nan).astype(
            np.float32
        )
