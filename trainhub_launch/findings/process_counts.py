"""Compares the processes of a node with its GPUs, for the findings of several frameworks."""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.words import looks_like_lightning, per_node_launcher
from trainhub_launch.spec import RunSpec


def against_gpus(level: str, field: str, processes: int, gpus: int, full: str) -> Iterator[Finding]:
    """Yields a finding if the number of processes does not fit the number of GPUs. `processes` and `gpus` are
    those of one node.

    `level`: the level of the finding if there are too many processes, "error" or "warning". `full`: the
    setting that would use all GPUs, such as "process_count 8"."""
    if gpus and processes > gpus:
        remedy = f"ask for {processes} GPUs on each node, or give at most {full}"
        message = (
            f"{processes} processes on a node with {gpus} requested GPU(s) would share devices; {remedy}"
        )
        yield Finding("error" if level == "error" else "warning", field, message)
    elif processes < gpus:
        message = (
            f"{processes} process(es) per node leave GPUs idle unless each uses several; {full} would use all"
        )
        yield Finding("hint", field, message)


def starts_own_processes(spec: RunSpec) -> bool:
    """Returns whether the command seems to start further processes on its node by itself."""
    return bool(per_node_launcher(spec)) or looks_like_lightning(spec)
