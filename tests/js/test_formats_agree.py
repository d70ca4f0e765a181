"""The browser formats numbers as the hub's pages do: both implementations give the same text."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from jobs.display.text import bytesize, duration
from tests.js.node import call
from tracking.curves.smoothing import moving_average
from tracking.templatetags.figures import figure

RANDOM = random.Random(7)  # noqa: S311 - the same values in every run
NUMBERS = [
    0.123456,
    0.5,
    0,
    -0.0,
    12,
    1_234_567,
    -0.25,
    -3,
    1234.5678,
    12345.6,
    99999.5,
    0.0001234,
    0.00001234,
    5e12,
    1.5e-300,
    -2.5e-7,
    1e9,
    999_999.9,
    0.99999,
    -0.00009999,
    123_456_789.5,
    *(RANDOM.uniform(-1, 1) * 10 ** RANDOM.randint(-12, 12) for _ in range(500)),
]
SIZES = [
    0,
    1,
    1023,
    1023.9,
    1024,
    10_239,
    10_240,
    2**20,
    2**30 - 1,
    2**40,
    12 * 2**40,
    5000 * 2**40,
    *(RANDOM.randint(0, 2**50) for _ in range(200)),
]
SECONDS = [
    0,
    0.04,
    0.1,
    0.4,
    0.96,
    1,
    59.9,
    61,
    3599,
    3661,
    172_799,
    172_800,
    200_000,
    *(RANDOM.uniform(0, 1e6) for _ in range(200)),
]


def test_metrics() -> None:
    assert call("curves/numbers.js", "value.map(m.formatNumber)", NUMBERS) == [
        figure(value) for value in NUMBERS
    ]


def test_what_is_not_a_number() -> None:
    names = ["NaN", "Infinity", "-Infinity", None]
    expected = [figure(value) for value in (math.nan, math.inf, -math.inf, None)]
    assert call("curves/numbers.js", "value.map(m.formatNumber)", names) == expected


def test_sizes() -> None:
    assert call("formats.js", "value.map(m.formatBytes)", SIZES) == [bytesize(value) for value in SIZES]


def test_durations() -> None:
    assert call("formats.js", "value.map(m.formatDuration)", SECONDS) == [
        duration(value) for value in SECONDS
    ]


def test_moving_averages() -> None:
    values = np.random.default_rng(2).normal(size=500)
    found = call("curves/moving-average.js", "m.movingAverage(value, 0.93)", values.tolist())
    assert found == pytest.approx(moving_average(values, 0.93))
