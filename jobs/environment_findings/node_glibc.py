"""Nodes whose glibc is too old for a package of the run's environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainhub_launch.findings import Finding
from trainhub_launch.scheduler.capabilities import BUILT, GLIBC, installed_glibc, unmet_capabilities
from trainhub_launch.scheduler.capacity import Demand, FreeNode, words

FIELD = "environment.name"
MAX_NAMED = 6


def glibc_findings(demand: Demand, nodes: Sequence[FreeNode]) -> Iterator[Finding]:
    """Yields a finding about the nodes that the run does not get because of their glibc: an error if too few
    others are left."""
    for need in sorted(item for item in demand.capabilities if item.startswith(GLIBC)):
        old = [node for node in nodes if not node.is_coming and unmet_capabilities({need}, node.capabilities)]
        if not old:
            continue
        version, _, package = need.removeprefix(GLIBC).partition(":")
        has = [f"{node.name} has {installed_glibc(node.capabilities)}" for node in old[:MAX_NAMED]]
        has += [f"{len(old) - MAX_NAMED} more have an older one, too"] if len(old) > MAX_NAMED else []
        is_short = len(nodes) - len(old) < demand.nodes
        then = "too few other nodes are left" if is_short else "the run is placed on other nodes"
        remedy = "" if BUILT in package else "; an older version of the package may run there"
        yield Finding(
            "error" if is_short else "hint",
            FIELD,
            f"{package} needs glibc {version} or newer, and {words(has)}: {then}{remedy}",
        )
