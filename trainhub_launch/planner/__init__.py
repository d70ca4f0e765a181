"""RunSpec + Placement -> LaunchPlan: pure, so that the preview is exactly what runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from types import MappingProxyType

from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks import framework_of
from trainhub_launch.plan import LaunchPlan, PlannedProcess
from trainhub_launch.processes import environment, mlflow
from trainhub_launch.processes.environment import Ports
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec

NO_PORTS: Ports = MappingProxyType({})


def plan(spec: RunSpec, placement: Placement, ports: Ports = NO_PORTS) -> LaunchPlan:
    """Every process of `spec` on `placement`. Raises SpecError for a spec that cannot be laid out.

    `ports`: node name -> the ports free there, ascending from 6105. Without any the plan is a
    preview: ports read `<assigned at launch>`.
    """
    return with_user_variables(spec, contract_plan(spec, placement, ports))


def contract_plan(spec: RunSpec, placement: Placement, ports: Ports = NO_PORTS) -> LaunchPlan:
    """The plan with the variables that TrainHub sets, without those of the user. Raises SpecError as `plan`
    does."""
    if len(placement.nodes) != spec.node_count:
        raise SpecError(
            "distribution", f"needs {spec.node_count} node(s), and the placement has {len(placement.nodes)}"
        )
    ours = mlflow.variables(spec)
    layout = framework_of(spec).planner(spec, placement, ports)
    return _with_processes(layout, lambda process: replace(process, env={**process.env, **ours}))


def with_user_variables(spec: RunSpec, contract: LaunchPlan) -> LaunchPlan:
    """The plan as it runs. Raises SpecError for a variable of the user that would tell a process it is
    another."""
    overridable = framework_of(spec).variables.overridable
    return _with_processes(contract, lambda process: _with_user_variables(spec, process, overridable))


def _with_user_variables(
    spec: RunSpec, process: PlannedProcess, overridable: Collection[str]
) -> PlannedProcess:
    own = environment.user_variables(spec, process.env, process.provided, overridable)
    return replace(process, env={**process.env, **own})


def _with_processes(plan: LaunchPlan, change: Callable[[PlannedProcess], PlannedProcess]) -> LaunchPlan:
    commands = (
        replace(command, processes=tuple(change(process) for process in command.processes))
        for command in plan.commands
    )
    return replace(plan, commands=tuple(commands))
