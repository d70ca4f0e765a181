"""Software that wants to be started in one way: Horovod, and accelerate on CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.words import per_node_launcher
from trainhub_launch.launchers import launcher
from trainhub_launch.spec import MpiConfiguration, RunSpec

_HOROVOD = "trainhub-horovod-"


def software(spec: RunSpec) -> Iterator[Finding]:
    if spec.environment.name.casefold().startswith(_HOROVOD) and not isinstance(
        spec.distribution, MpiConfiguration
    ):
        yield Finding(
            "warning",
            "distribution",
            "Horovod's processes find each other through MPI, and without it each trains alone; "
            "choose the MPI distribution with process_count_per_node",
        )
    yield from _accelerate_on_cpus(spec)


def _accelerate_on_cpus(spec: RunSpec) -> Iterator[Finding]:
    found = launcher(spec.command)
    if found is None or per_node_launcher(spec) != "accelerate launch" or spec.resources.gpus_per_node:
        return
    count = found.option("--num-processes")
    if count == "1":
        return
    yield Finding(
        "warning",
        "command",
        "on CPUs accelerate launch starts one process, whatever --num_processes says; use torchrun "
        f"--nproc_per_node {count or 2} in its place: the script stays as it is",
    )
