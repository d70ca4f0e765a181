"""Collects all findings about a spec before it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainhub_launch.findings.all_gpus import all_gpus_findings
from trainhub_launch.findings.arguments import arguments
from trainhub_launch.findings.environment import environment_findings
from trainhub_launch.findings.finding import LEVELS, Finding
from trainhub_launch.findings.fit import fit
from trainhub_launch.findings.hosts import hosts
from trainhub_launch.findings.references import reference_findings
from trainhub_launch.findings.restarts import own_restarts
from trainhub_launch.findings.software import software
from trainhub_launch.findings.source import source
from trainhub_launch.findings.user_launcher import user_launcher
from trainhub_launch.findings.variables import variable_findings
from trainhub_launch.frameworks import FRAMEWORKS
from trainhub_launch.frameworks.framework import Framework
from trainhub_launch.planner.draft import DraftPlan


def validate(
    draft: DraftPlan, *, paths: Collection[str] | None, environments: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Returns all findings about a draft: errors first, then warnings, then hints. Never raises.

    `paths`: the files of the snapshot, None = unknown. `environments`: the names of the environments there
    are, None = unknown."""
    findings = [
        *source(draft.spec, paths),
        *_of_command(draft),
        *_of_frameworks(draft),
        *_of_variables(draft),
        *environment_findings(draft.spec, environments, paths),
        *_of_nodes(draft),
    ]
    return sort_findings(findings)


def sort_findings(findings: Collection[Finding]) -> tuple[Finding, ...]:
    """Returns the findings without duplicates, errors first."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: LEVELS.index(finding.level)))


def _of_command(draft: DraftPlan) -> Iterator[Finding]:
    spec, rules = draft.spec, draft.framework.variables
    yield from user_launcher(spec, rules.node_rank)
    yield from own_restarts(spec, sets_master=rules.sets_master)
    yield from software(spec)
    yield from arguments(spec, sets_master=rules.sets_master)


def _of_frameworks(draft: DraftPlan) -> Iterator[Finding]:
    yield from draft.framework.findings(draft.spec)
    for other in _others(draft.framework):
        yield from other.findings_elsewhere(draft.spec)


def _of_variables(draft: DraftPlan) -> Iterator[Finding]:
    if draft.error is not None:
        yield Finding("error", draft.error.field, draft.error.message)
    if draft.contract is not None:
        yield from reference_findings(draft.spec, draft.contract, lambda name: _remedy(draft, name))
    yield from variable_findings(draft.spec, draft.contract, draft.framework.variables.overridable)


def _remedy(draft: DraftPlan, name: str) -> str:
    """Returns what to use instead of a variable that will not exist, as far as a framework knows, or ""."""
    own = draft.framework.variables.remedy(draft.spec, name)
    return own or next(
        filter(None, (other.variables.suggestion(name) for other in _others(draft.framework))), ""
    )


def _of_nodes(draft: DraftPlan) -> Iterator[Finding]:
    yield from draft.framework.node_findings(draft.spec, draft.chosen_nodes)
    yield from hosts(draft.chosen_nodes)
    yield from all_gpus_findings(draft.demand, draft.nodes)
    yield from fit(draft.idle, draft.now)


def _others(framework: Framework) -> Iterator[Framework]:
    return (other for other in FRAMEWORKS.values() if other.name != framework.name)
