"""What the hub knows of a framework. Each folder beside this file describes one; `FRAMEWORKS` lists them."""

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
    """The JSON of a framework's `distribution`.

    `read` takes the fields beside `type` and raises SpecError; it need not look for unknown ones.
    `json_schema` describes the same for the OpenAPI document, with `type`.
    `summary` says a configuration in a few characters, behind the label of the framework, as in "×4".
    """

    read: Callable[[Fields], Distribution]
    json_schema: Mapping[str, Any]
    summary: Callable[[Distribution], str]


@dataclass(frozen=True)
class VariableRules:
    """What there is to say about the environment variables that a framework's planner sets.

    `overridable` names those that tune a process and do not say who it is: the user's own value wins.
    `sets_master`: every process has MASTER_ADDR and MASTER_PORT.
    `node_rank` is what a launcher in the command writes for the rank of its node.
    `remedy`: a run of this framework refers to a variable that will not exist; what to do instead, or "".
    `suggestion`: the same about a run of another framework, where choosing this one would help; or "".
    """

    overridable: frozenset[str] = frozenset()
    sets_master: bool = False
    node_rank: str = "$NODE_RANK"
    remedy: Callable[[RunSpec, str], str] = no_remedy
    suggestion: Callable[[str], str] = no_suggestion


@dataclass(frozen=True)
class Framework:
    """One framework.

    `name` is `distribution.type` in a spec; `label` and `sentence` tell a person when to choose it.
    `configuration` is None for the framework of a spec without a distribution.
    `planner` lays the processes out on the nodes of a placement; `demand` says what the placement must offer.
    `cards` are the choices that the wizard offers for it.
    `findings` judges a spec of this framework; `node_findings` judges the nodes that it would get, in the
    order of their ranks.
    `findings_elsewhere` judges specs of other frameworks that seem to need this one.
    """

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
