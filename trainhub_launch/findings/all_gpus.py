"""Findings about runs that take all GPUs of each of their nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainhub_launch.findings.finding import Finding
from trainhub_launch.scheduler.capacity import Demand, FreeNode, counted, words
from trainhub_launch.scheduler.rejections import GPUS_FIELD


def all_gpus_findings(demand: Demand, nodes: Sequence[FreeNode]) -> Iterator[Finding]:
    """Yields at most one finding: nodes have no GPUs, or different numbers of them."""
    if demand.all_gpus is None or not nodes:
        return
    if not demand.gpus:
        yield Finding(
            "warning",
            GPUS_FIELD,
            "no node of the cluster has GPUs, so all of them are 0, and the run gets process slots on CPUs; "
            "give 0 if that is meant, or choose a cluster with GPUs",
        )
        return
    others = sorted({node.gpus_total for node in nodes} - {demand.gpus})
    if others:
        yield Finding(
            "hint",
            GPUS_FIELD,
            f"the run gets {counted(demand.nodes, 'node')} with {counted(demand.gpus, 'GPU')}"
            f"{'' if demand.nodes == 1 else ' each'}, and none of the nodes with "
            f"{words([str(count) for count in others])}: all GPUs are the largest number that enough nodes "
            "have; give a number to use the others",
        )
