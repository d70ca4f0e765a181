"""Formats numbers for the run table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def format_number(value: float) -> str:
    """Returns four significant digits: `0.9123`, `1.2e-05`, `123457`."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        # From 10,000 on, four significant digits in the format `g` would have an exponent.
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return f"{value:.3g}"


def mean_and_spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Returns the mean and the sample standard deviation, None for a single value. `values` is not empty."""
    array = np.asarray(values, np.float64)
    # The deviation of infinite values is NaN, which is shown as such.
    with np.errstate(invalid="ignore"):
        return float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else None


def spread_figure(mean: float, spread: float | None) -> str:
    """Returns a text such as `0.9123 ± 0.0043`, with two significant digits of the spread and as many
    decimals of the mean."""
    if spread is None or not math.isfinite(spread) or not math.isfinite(mean):
        return format_number(mean)
    if spread == 0:
        return f"{format_number(mean)} ± 0"
    digits = 1 - math.floor(math.log10(spread))
    if 0 <= digits <= 6 and abs(mean) < 1e6:
        return f"{mean:.{digits}f} ± {spread:.{digits}f}"
    return f"{format_number(mean)} ± {format_number(spread)}"
