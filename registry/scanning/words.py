"""Verdicts, the worst last. Standard library only: the scanning process starts with it."""

from __future__ import annotations

from collections.abc import Iterable

CLEAN, SUSPICIOUS, UNSCANNED, DANGEROUS = "clean", "suspicious", "unscanned", "dangerous"
ORDER = (CLEAN, SUSPICIOUS, UNSCANNED, DANGEROUS)


def worst(verdicts: Iterable[str]) -> str:
    return max(verdicts, key=ORDER.index, default=CLEAN)
