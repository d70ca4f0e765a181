"""Does the run fit the cluster?"""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.scheduler.placement import Placement, Refusal


def fit(idle: Placement | Refusal, now: Placement | Refusal) -> Iterator[Finding]:
    """`idle`: what the run would get if the nodes were idle. `now`: what it would get of what is free."""
    if isinstance(idle, Refusal):
        yield Finding("error" if idle.permanent else "warning", idle.field, idle.sentence)
    elif isinstance(now, Refusal):
        yield Finding("hint", now.field, f"{now.sentence} The run will wait in the queue.")
