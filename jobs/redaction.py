"""Masks secret values in sentences from nodes before they are stored."""

from __future__ import annotations

from collections.abc import Iterable

MASK = "••••••"
# Shorter values are not masked, because they would match parts of ordinary words.
MIN_LENGTH = 4


def mask(text: str, values: Iterable[str]) -> str:
    """Returns `text` with all `values` masked, the longest first because one value may contain another."""
    for value in sorted((value for value in values if len(value) >= MIN_LENGTH), key=len, reverse=True):
        text = text.replace(value, MASK)
    return text
