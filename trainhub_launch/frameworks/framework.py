"""What the hub knows about a framework. Each folder beside this file describes one; `FRAMEWORKS` lists
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainhub_launch.distribution import Distribution
from trainhub_launch.fields import Fields
from trainhub_launch.findings.finding import Finding
from trainhub_launch.frameworks.form import FormCard
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.processes.environment import Ports
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec

Planner = Callable[[RunSpec, Placement, Ports], LaunchPlan]


def no_findings(spec: RunSpec) -> Iterable[Finding]:  # noqa: ARG001 (the shape of `Framework.findings`)
    return ()


def no_node_findings(
    spec: RunSpec,  # noqa: ARG001 (the shape of `Framework.node_findings`)
    nodes: Sequence[FreeNode],  # noqa: ARG001 (as above)
) -> Iterable[Finding]:
    return ()


def no_remedy(spec: RunSpec, name: str) -> str:  # noqa: ARG001 (the shape of `VariableRules.remedy`)
    return ""


def no_suggestion(name: str) -> str:  # noqa: ARG001 (the shape of `VariableRules.suggestion`)
    return ""


@dataclass(frozen=True)
class ConfigurationFormat:
    """The JSON format of a framework's `distribution`.

    `read` takes the fields beside `type` and raises SpecError; it need not check for unknown ones.
    `json_schema` describes the same for the OpenAPI document, with `type`. `summary` returns a configuration
    in a few characters, such as "×4", to be shown after the label of the framework."""

    read: Callable[[Fields], Distribution]
    json_schema: Mapping[str, Any]
    summary: Callable[[Distribution], str]


@dataclass(frozen=True)
class VariableRules:
    """Rules about the environment variables that a framework's planner sets.

    `overridable` names variables that only tune a process, so that the user's own value has precedence.
    `sets_master`: every process has MASTER_ADDR and MASTER_PORT. `node_rank` is the reference that a launcher
    in the command needs for the rank of its node. `remedy` returns what to use instead of a variable that a
    run of this framework will not have, or "". `suggestion` returns the same for a run of another framework,
    if choosing this framework would help, or ""."""

    overridable: frozenset[str] = frozenset()
    sets_master: bool = False
    node_rank: str = "$NODE_RANK"
    remedy: Callable[[RunSpec, str], str] = no_remedy
    suggestion: Callable[[str], str] = no_suggestion


@dataclass(frozen=True)
class Framework:
    """The description of one framework.

    `name` is `distribution.type` in a spec; `label` and `sentence` explain to people when to choose it.
    `configuration` is None for the framework of a spec without a distribution. `planner` assigns the
    processes to the nodes of a placement; `demand` returns what the placement must offer. `cards` are the
    choices that the wizard offers for it. `findings` checks a spec of this framework; `node_findings` checks
    the nodes that the run would get, in the order of their ranks. `findings_elsewhere` checks specs of other
    frameworks that seem to need this one."""

    name: str
    label: str
    sentence: str
    planner: Planner
    demand: Callable[[RunSpec], Demand]
    cards: tuple[FormCard, ...]
    configuration: ConfigurationFormat | None = None
    findings: Callable[[RunSpec], Iterable[Finding]] = no_findings
    node_findings: Callable[[RunSpec, Sequence[FreeNode]], Iterable[Finding]] = no_node_findings
    findings_elsewhere: Callable[[RunSpec], Iterable[Finding]] = no_findings
    variables: VariableRules = VariableRules()
