"""Warns of programs that ignore their options in some situations: accelerate on CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.words import per_node_launcher
from trainhub_launch.processes.launchers import launcher
from trainhub_launch.spec import RunSpec


def software(spec: RunSpec) -> Iterator[Finding]:
    user_launcher = launcher(spec.command)
    if (
        user_launcher is None
        or per_node_launcher(spec) != "accelerate launch"
        or spec.resources.gpus_per_node
    ):
        return
    count = user_launcher.option("--num-processes")
    if count == "1":
        return
    yield Finding(
        "warning",
        "command",
        "on CPUs accelerate launch starts one process, whatever --num_processes says; use torchrun "
        f"--nproc_per_node {count or 2} in its place: the script stays as it is",
    )
