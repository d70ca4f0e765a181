"""Checks whether the run fits the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.scheduler.placement import Placement, Refusal


def fit(idle: Placement | Refusal, now: Placement | Refusal) -> Iterator[Finding]:
    """Yields at most one finding. `idle` is the placement of the run if all nodes were idle, and `now` the
    placement with the resources that are free at present."""
    if isinstance(idle, Refusal):
        yield Finding("error" if idle.permanent else "warning", idle.field, idle.sentence)
    elif isinstance(now, Refusal):
        yield Finding("hint", now.field, f"{now.sentence} The run will wait in the queue.")
