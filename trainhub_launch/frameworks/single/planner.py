"""Plans runs without a distribution: one process on one node, which may be the user's own launcher."""

from __future__ import annotations

from trainhub_launch.frameworks.layout import argv, demand_of, log_name
from trainhub_launch.plan import LaunchPlan, NodeCommand, PlannedProcess
from trainhub_launch.processes import elastic, environment
from trainhub_launch.processes.environment import Ports
from trainhub_launch.processes.launchers import processes_started
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec


def demand(spec: RunSpec) -> Demand:
    return demand_of(spec, 1)


# A single process needs no ports, but every planner takes them.
def plan(spec: RunSpec, placement: Placement, ports: Ports) -> LaunchPlan:  # noqa: ARG001
    head = placement.head
    process = PlannedProcess(
        rank=0,
        local_rank=0,
        node_rank=0,
        role="main",
        log_name=log_name(0, 1),
        argv=argv(spec),
        gpus=head.gpus,
        env=environment.common(head, placement, processes=processes_started(spec), visible=head.gpus)
        | elastic.variables(spec, placement, 0),
    )
    command = NodeCommand(node=head.name, node_rank=0, address=head.address, processes=(process,))
    return LaunchPlan(framework="single", commands=(command,))
