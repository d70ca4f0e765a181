"""Makes a LaunchPlan from a RunSpec and a Placement. Pure functions, so that a preview shows exactly what
will run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from types import MappingProxyType

from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks import framework_of
from trainhub_launch.plan import LaunchPlan, PlannedProcess
from trainhub_launch.processes import azureml, environment, inputs, mlflow
from trainhub_launch.processes.environment import Ports
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec

NO_PORTS: Ports = MappingProxyType({})


def plan(spec: RunSpec, placement: Placement, ports: Ports = NO_PORTS) -> LaunchPlan:
    """Returns the plan of `spec` on `placement`. Raises SpecError for a spec that cannot be planned.

    `ports`: name of a node -> free ports there, ascending from 6105. Without any the plan is a preview, and
    its ports read `<assigned at launch>`."""
    return with_user_variables(spec, contract_plan(spec, placement, ports))


def contract_plan(spec: RunSpec, placement: Placement, ports: Ports = NO_PORTS) -> LaunchPlan:
    """Returns the plan with the variables that TrainHub sets, without the user's. Raises SpecError like
    `plan`."""
    if len(placement.nodes) != spec.node_count:
        raise SpecError(
            "distribution", f"needs {spec.node_count} node(s), and the placement has {len(placement.nodes)}"
        )
    spec = spec.with_gpus(len(placement.head.gpus))
    ours = {**mlflow.variables(spec), **inputs.variables(spec)}
    layout = framework_of(spec).planner(spec, placement, ports)

    def with_ours(process: PlannedProcess) -> PlannedProcess:
        # What a framework sets under the same names wins.
        env = {**azureml.variables(spec, placement, process), **process.env, **ours}
        return replace(process, env=env)

    return _with_processes(layout, with_ours)


def with_user_variables(spec: RunSpec, contract: LaunchPlan) -> LaunchPlan:
    """Returns the plan with the user's variables added. Raises SpecError for a variable that would change the
    identity of a process, such as its rank."""
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
