"""Does the run fit the cluster, and can it be planned at all?"""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.errors import SpecError
from trainhub_launch.findings.finding import Finding
from trainhub_launch.placement import FreeNode, Placement, Refusal, demand, place, provisional
from trainhub_launch.planner import plan
from trainhub_launch.spec import RunSpec


def fit(spec: RunSpec, nodes: tuple[FreeNode, ...]) -> Iterator[Finding]:
    wanted = demand(spec)
    idle = provisional(wanted, nodes)
    if isinstance(idle, Refusal):
        yield Finding("error" if idle.permanent else "warning", idle.field, idle.sentence)
        return
    now = place(wanted, nodes)
    if isinstance(now, Refusal):
        yield Finding("hint", now.field, f"{now.sentence} The run will wait in the queue.")
    yield from _planned(spec, idle)


def _planned(spec: RunSpec, placement: Placement) -> Iterator[Finding]:
    try:
        plan(spec, placement)
    except SpecError as error:
        yield Finding("error", error.field, error.message)
