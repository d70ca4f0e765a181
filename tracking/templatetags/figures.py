"""Filters that format values of metrics, in the same way as static/js/curves/numbers.js."""

from __future__ import annotations

import math

from django import template

register = template.Library()
DIGITS = 4


@register.filter
def figure(value: float | None) -> str:
    """Returns four significant digits: `0.1234`, `1,234`, `1.234e−7`; NaN and ∞ as such."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    size = abs(value)
    if value == int(value) and size < 1e9:
        return f"{int(value):,}".replace("-", "−")
    if 1e-4 <= size < 1e6:
        return _trimmed(
            f"{value:#.{DIGITS}g}" if size < 1000 else f"{value:.{max(0, DIGITS - len(str(int(size))))}f}"
        )
    digits, _, exponent = f"{value:.{DIGITS - 1}e}".partition("e")
    return f"{_trimmed(digits)}e{int(exponent)}".replace("-", "−")


def _trimmed(text: str) -> str:
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")
