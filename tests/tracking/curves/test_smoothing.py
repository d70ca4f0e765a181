from __future__ import annotations

import numpy as np
import pytest

from tracking.curves.smoothing import moving_average


def one_by_one(values: np.ndarray, weight: float) -> list[float]:
    """As TensorBoard has it."""
    last, found = 0.0, []
    for place, value in enumerate(values):
        last = last * weight + (1 - weight) * value
        found.append(last / (1 - weight ** (place + 1)))
    return found


class TestSmoothing:
    @pytest.mark.parametrize("weight", [0.01, 0.3, 0.6, 0.9, 0.99, 0.999])
    @pytest.mark.parametrize("count", [2, 3, 1000, 50_000])
    def test_is_the_average_that_a_loop_would_find(self, weight: float, count: int) -> None:
        values = np.random.default_rng(count).normal(5, 3, count)
        assert moving_average(values, weight) == pytest.approx(one_by_one(values, weight), rel=1e-9, abs=1e-9)

    def test_begins_with_the_first_value(self) -> None:
        assert moving_average(np.array([7.0, 7.0, 9.0]), 0.99)[0] == pytest.approx(7.0)

    def test_of_great_and_small_values_stays_a_number(self) -> None:
        values = np.array([1e-200, 1e200, -1e200, 0.0] * 5_000)
        assert np.isfinite(moving_average(values, 0.5)).all()

    def test_by_nothing_changes_nothing(self) -> None:
        values = np.array([1.0, 5.0])
        assert moving_average(values, 0) is values
        assert moving_average(np.empty(0), 0.9).size == 0
