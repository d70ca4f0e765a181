"""Makes the garbage collector look at what the tests leave behind, and not again and again at thousands of
collected tests: a fifth of the CPU time of unit tests."""

from __future__ import annotations

import gc

import pytest

# So many new objects lead to a collection of the youngest ones, and so many of these to one of older ones.
THRESHOLDS = (20_000, 10, 10)

# What is imported and collected from here on stays until the end.
gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
