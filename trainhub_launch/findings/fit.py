"""Does the run fit the cluster, and can it be planned at all?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trainhub_launch import tracking
from trainhub_launch.errors import SpecError
from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.hosts import hosts
from trainhub_launch.placement import (
    Demand,
    FreeNode,
    PlacedNode,
    Placement,
    Refusal,
    demand,
    place,
    provisional,
)
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.planner import plan
from trainhub_launch.spec import RunSpec


def fit(spec: RunSpec, nodes: tuple[FreeNode, ...]) -> Iterator[Finding]:
    wanted = demand(spec)
    idle = provisional(wanted, nodes)
    if isinstance(idle, Refusal):
        yield Finding("error" if idle.permanent else "warning", idle.field, idle.sentence)
        return
    now = place(wanted, nodes)
    names = [node.name for node in (idle if isinstance(now, Refusal) else now).nodes]
    yield from hosts(
        spec, [node for name in names for node in nodes if node.name == name and not node.is_coming]
    )
    if isinstance(now, Refusal):
        yield Finding("hint", now.field, f"{now.sentence} The run will wait in the queue.")


def planned(spec: RunSpec) -> LaunchPlan | Finding:
    """What TrainHub alone would set, on nodes as they would have to be: a spec is checked whole even
    while no node is ready, and whatever its variables are. One of them decides what TrainHub sets."""
    deciding = {name: value for name, value in spec.environment_variables.items() if name == tracking.SERVER}
    try:
        return plan(replace(spec, environment_variables=deciding), _imagined(demand(spec)))
    except SpecError as error:
        return Finding("error", error.field, error.message)


def _imagined(wanted: Demand) -> Placement:
    return Placement(
        tuple(
            PlacedNode(
                name=f"node {rank}",
                address=f"<address of node {rank}>",
                gpus=tuple(f"<GPU {i}>" for i in range(wanted.gpus)),
                slots=wanted.slots,
                cores=1,
                interface="<interface>",
            )
            for rank in range(wanted.nodes)
        )
    )
