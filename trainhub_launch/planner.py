"""RunSpec + Placement -> LaunchPlan: pure, so that the preview is exactly what runs."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from trainhub_launch import environment, tracking
from trainhub_launch.environment import Ports
from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks import FRAMEWORKS, framework_of
from trainhub_launch.placement import Placement
from trainhub_launch.plan import LaunchPlan, NodeCommand, PlannedProcess
from trainhub_launch.spec import RunSpec

NO_PORTS: Ports = MappingProxyType({})


def plan(spec: RunSpec, placement: Placement, ports: Ports = NO_PORTS) -> LaunchPlan:
    """Every process of `spec` on `placement`. Raises SpecError for a spec that cannot be laid out.

    `ports`: node name -> the ports free there, ascending from 6105. Without any the plan is a
    preview: ports read `<assigned at launch>`.
    """
    if len(placement.nodes) != spec.node_count:
        raise SpecError(
            "distribution", f"needs {spec.node_count} node(s), and the placement has {len(placement.nodes)}"
        )
    made = FRAMEWORKS[framework_of(spec)].planner(spec, placement, ports)
    return replace(made, commands=tuple(_with_user_variables(spec, command) for command in made.commands))


def _with_user_variables(spec: RunSpec, command: NodeCommand) -> NodeCommand:
    return replace(command, processes=tuple(_with_variables(spec, process) for process in command.processes))


def _with_variables(spec: RunSpec, process: PlannedProcess) -> PlannedProcess:
    env = {**process.env, **tracking.variables(spec)}
    return replace(process, env={**env, **environment.user_variables(spec, env, process.provided)})
