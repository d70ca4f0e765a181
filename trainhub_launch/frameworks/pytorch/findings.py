"""Findings about PyTorch runs and their nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainhub_launch.distribution import narrow
from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.hosts import same_host_name
from trainhub_launch.findings.process_counts import against_gpus, starts_own_processes
from trainhub_launch.findings.words import (
    looks_like_lightning,
    looks_like_transformers,
    option,
    per_node_launcher,
)
from trainhub_launch.frameworks.pytorch.configuration import PyTorchConfiguration, indivisible
from trainhub_launch.frameworks.pytorch.variables import PER_PROCESS
from trainhub_launch.processes.launchers import python_script
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.spec import RunSpec

_RUN_SCRIPT = re.compile(r"run_\w+\.py\Z")
_FIELD = "distribution.process_count"


def findings(spec: RunSpec) -> Iterator[Finding]:
    configuration = narrow(spec.distribution, PyTorchConfiguration)
    if configuration.process_count is None:
        yield from _processes_per_node(spec, configuration)
    else:
        yield from _launcher_in_command(spec, configuration.process_count)
        yield from _process_count(spec, configuration, configuration.process_count)
    yield from _backend(spec, configuration.communication_backend)
    # A launcher passes the local rank on by itself, and a single process needs none.
    if (configuration.process_count or 1) > 1:
        yield from _local_rank(spec)


def _launcher_in_command(spec: RunSpec, processes: int) -> Iterator[Finding]:
    launcher = per_node_launcher(spec)
    if launcher:
        yield Finding(
            "error",
            _FIELD,
            f"{launcher} starts the processes of its node itself, and with process_count it "
            f"would be started {processes} times; leave process_count out (one {launcher} per node)",
        )
    if looks_like_lightning(spec):
        yield Finding(
            "warning",
            _FIELD,
            "these look like Lightning's options; Lightning starts the processes of a "
            "node itself and wants node_count alone: leave process_count out, or make devices the "
            "processes on each node",
        )


def _process_count(spec: RunSpec, configuration: PyTorchConfiguration, processes: int) -> Iterator[Finding]:
    gpus, nodes = spec.resources.gpus_per_node, configuration.node_count
    if processes % nodes:
        yield Finding("error", _FIELD, indivisible(processes, nodes))
        return
    # With NCCL two ranks on one GPU end in an error; with other backends they only share it.
    level = "error" if configuration.communication_backend == "nccl" else "warning"
    yield from against_gpus(level, _FIELD, processes // nodes, gpus, f"process_count {gpus * nodes}")


def _processes_per_node(spec: RunSpec, configuration: PyTorchConfiguration) -> Iterator[Finding]:
    gpus, nodes = spec.resources.gpus_per_node, configuration.node_count
    if gpus > 1 and not starts_own_processes(spec):
        yield Finding(
            "hint",
            _FIELD,
            f"without it one process per node is started, for a launcher such as "
            f"torchrun; to have TrainHub start one for each GPU, give {gpus * nodes}",
        )
    for name in sorted(PER_PROCESS & spec.environment_variables.keys()):
        yield Finding(
            "error",
            f"environment_variables.{name}",
            "is for the launcher of each node to set; with it Lightning takes "
            "itself for a process that somebody else started, and waits for ever",
        )


def _backend(spec: RunSpec, backend: str) -> Iterator[Finding]:
    field, gpus = "distribution.communication_backend", spec.resources.gpus_per_node
    if backend == "nccl" and not gpus:
        yield Finding(
            "hint",
            field,
            "nccl needs GPUs and this run asks for none: choose gloo, and let the script call "
            "init_process_group('gloo') where torch.cuda.is_available() is false",
        )
    elif backend == "gloo" and gpus:
        yield Finding("hint", field, "between GPUs nccl is several times faster than gloo")
    elif backend == "mpi":
        yield Finding(
            "warning",
            field,
            "PyTorch's own packages are built without MPI; choose nccl for GPUs or gloo for CPUs",
        )


def _local_rank(spec: RunSpec) -> Iterator[Finding]:
    """Warns if a Transformers script lacks `--local_rank`. Launchers add it to the arguments, but TrainHub
    sets only the variable."""
    if per_node_launcher(spec) or option(spec, "--local-rank"):
        return
    script = spec.script or python_script(spec.command)
    if looks_like_transformers(spec) or (_RUN_SCRIPT.search(script) and option(spec, "--model-name-or-path")):
        field = "command" if spec.command else "arguments"
        yield Finding(
            "warning",
            field,
            "this looks like a Transformers script; its TrainingArguments learn the local rank from "
            "--local_rank (newer ones from LOCAL_RANK as well): add the two arguments --local_rank "
            "and $LOCAL_RANK",
        )


def node_findings(spec: RunSpec, nodes: Sequence[FreeNode]) -> Iterator[Finding]:
    if narrow(spec.distribution, PyTorchConfiguration).communication_backend == "gloo":
        yield from same_host_name(nodes)
