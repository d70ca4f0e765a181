"""Measures periodic work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workspaces.hub_metrics.instruments import ROUND_FAILURES, ROUND_SECONDS


@contextmanager
def measured_round(name: str) -> Iterator[None]:
    """Observes how long the work in its body takes, and counts it where it fails."""
    with ROUND_FAILURES.labels(name).count_exceptions(), ROUND_SECONDS.labels(name).time():
        yield
