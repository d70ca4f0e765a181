"""Everything that can be said about a spec before it runs, each beside the field it concerns."""

from __future__ import annotations

from collections.abc import Collection

from trainhub_launch.findings.arguments import arguments
from trainhub_launch.findings.counts import counts
from trainhub_launch.findings.environment import RESERVED_PREFIXES, environment, reserved
from trainhub_launch.findings.finding import LEVELS, Finding
from trainhub_launch.findings.fit import fit, planned
from trainhub_launch.findings.launching import launching
from trainhub_launch.findings.references import references
from trainhub_launch.findings.restarts import own_restarts
from trainhub_launch.findings.software import software
from trainhub_launch.findings.source import source
from trainhub_launch.findings.variables import variables
from trainhub_launch.placement import FreeNode
from trainhub_launch.spec import RunSpec

__all__ = ["RESERVED_PREFIXES", "Finding", "findings", "reserved"]


def findings(
    spec: RunSpec,
    *,
    paths: Collection[str] | None,
    nodes: tuple[FreeNode, ...],
    environments: Collection[str] | None = None,
) -> tuple[Finding, ...]:
    """Errors first, then warnings, then hints. Never raises.

    `paths`: the files of the snapshot, None = not known yet. `environments`: the names there are, None = not
    known."""
    plan = planned(spec)
    found = [
        *source(spec, paths),
        *launching(spec),
        *own_restarts(spec),
        *software(spec),
        *counts(spec),
        *arguments(spec),
    ]
    if isinstance(plan, Finding):
        found += [plan, *variables(spec, None)]
    else:
        found += [*references(spec, plan), *variables(spec, plan)]
    found += [*environment(spec, environments), *fit(spec, nodes)]
    return tuple(sorted(dict.fromkeys(found), key=lambda finding: LEVELS.index(finding.level)))
