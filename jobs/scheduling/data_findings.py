"""What is wrong or doubtful about the data that a run reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from datastores.input_paths import look_up
from trainhub_launch.findings import Finding
from trainhub_launch.machine import OWN_ACCOUNTS
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.spec import RunSpec
from workspaces.models import Workspace


def data_findings(spec: RunSpec, workspace: Workspace, nodes: Sequence[FreeNode]) -> Iterator[Finding]:
    """`nodes`: those that the run would get."""
    paths, problems = look_up(spec, workspace)
    for problem in problems:
        yield Finding("error", problem.field, problem.message)
    apart = [node.name for node in nodes if OWN_ACCOUNTS in node.capabilities]
    if paths and apart:
        whose = f"{apart[0]} and {len(apart) - 1} more" if len(apart) > 1 else apart[0]
        yield Finding(
            "hint",
            "inputs",
            f"runs on {whose} have accounts of their own, so everybody there must be able to read "
            f"{', '.join(sorted(set(paths.values())))}",
        )
