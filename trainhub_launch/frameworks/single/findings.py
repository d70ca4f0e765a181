"""Findings about runs of one process."""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.process_counts import starts_own_processes
from trainhub_launch.spec import RunSpec


def findings(spec: RunSpec) -> Iterator[Finding]:
    gpus = spec.resources.gpus_per_node
    if gpus > 1 and not starts_own_processes(spec):
        yield Finding(
            "hint",
            "distribution",
            f"one process will see all {gpus} GPUs; for distributed data "
            f"parallel, the right choice in most cases, choose PyTorch with process_count {gpus}",
        )
