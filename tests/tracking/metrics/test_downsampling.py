from __future__ import annotations

import numpy as np
import pytest

from tracking.metrics.downsampling import PER_PIXEL, downsample


def columns(x: np.ndarray, first: float, last: float, pixels: int) -> np.ndarray:
    columns: np.ndarray = np.minimum(((x - first) * (pixels / (last - first))).astype(int), pixels - 1)
    return columns


class TestThinned:
    @pytest.mark.parametrize("pixels", [1, 7, 100])
    def test_each_pixel_keeps_its_first_least_greatest_and_last(self, pixels: int) -> None:
        random = np.random.default_rng(7)
        x = np.sort(random.uniform(0, 1000, 20_000))
        y = random.normal(size=20_000)
        thin_x, thin_y = downsample(x, y, pixels)
        assert len(thin_x) <= PER_PIXEL * pixels
        before, after = columns(x, x[0], x[-1], pixels), columns(thin_x, x[0], x[-1], pixels)
        for pixel in np.unique(before):
            whole, drawn = y[before == pixel], thin_y[after == pixel]
            assert (drawn.min(), drawn.max()) == (whole.min(), whole.max())
            assert (drawn[0], drawn[-1]) == (whole[0], whole[-1])

    def test_a_single_spike_among_a_million_is_kept(self) -> None:
        y = np.zeros(1_000_000)
        y[777_777] = 1e9
        x, thin = downsample(np.arange(1_000_000.0), y, 800)
        assert thin.max() == 1e9
        assert x[thin.argmax()] == 777_777

    def test_few_points_stay_as_they_are(self) -> None:
        x, y = np.arange(40.0), np.arange(40.0)
        thin_x, thin_y = downsample(x, y, 10)
        assert (list(thin_x), list(thin_y)) == (list(x), list(y))

    def test_points_of_one_step_keep_their_extremes(self) -> None:
        y = np.concatenate((np.zeros(500), [9.0, -9.0], np.zeros(500)))
        _, thin = downsample(np.ones(1002), y, 10)
        assert sorted(thin) == [-9.0, 0.0, 0.0, 9.0]

    def test_of_nothing_there_is_nothing(self) -> None:
        x, y = downsample(np.empty(0), np.empty(0), 10)
        assert (len(x), len(y)) == (0, 0)
