"""Everything that can be said about a spec before it runs, each beside the field it concerns."""

from __future__ import annotations

from collections.abc import Collection

from trainhub_launch.findings.environment import environment
from trainhub_launch.findings.finding import LEVELS, Finding
from trainhub_launch.findings.fit import fit
from trainhub_launch.findings.source import source
from trainhub_launch.placement import FreeNode
from trainhub_launch.spec import RunSpec

__all__ = ["Finding", "findings"]


def findings(
    spec: RunSpec, *, paths: Collection[str] | None, nodes: tuple[FreeNode, ...], environments: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Errors first, then warnings, then hints. Never raises.

    `paths`: the files of the snapshot, None = not known yet. `environments`: the names there are.
    """
    found = [*source(spec, paths), *environment(spec, environments), *fit(spec, nodes)]
    return tuple(sorted(found, key=lambda finding: LEVELS.index(finding.level)))
