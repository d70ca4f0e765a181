"""Values that nobody may read: taken out of every sentence that comes from a node before it is stored."""

from __future__ import annotations

from collections.abc import Iterable

MASK = "••••••"
MIN_LENGTH = 4
"""Shorter values are not masked: they would eat ordinary words."""


def mask(text: str, values: Iterable[str]) -> str:
    """`text` without any of `values`; the longest first, so that one value inside another leaves no rest."""
    for value in sorted((value for value in values if len(value) >= MIN_LENGTH), key=len, reverse=True):
        text = text.replace(value, MASK)
    return text
