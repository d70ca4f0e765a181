"""Processes, nodes and GPUs that do not go together."""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.words import looks_like_lightning, per_node_launcher
from trainhub_launch.frameworks.pytorch import indivisible
from trainhub_launch.frameworks.shape import deal
from trainhub_launch.spec import MpiConfiguration, PyTorchConfiguration, RunSpec, TensorflowConfiguration


def counts(spec: RunSpec) -> Iterator[Finding]:
    distribution = spec.distribution
    if isinstance(distribution, PyTorchConfiguration):
        yield from _pytorch(spec, distribution)
        yield from _backend(spec, distribution)
    elif isinstance(distribution, MpiConfiguration):
        yield from _mpi(spec, distribution)
    elif isinstance(distribution, TensorflowConfiguration):
        yield from _tensorflow(spec, distribution)
    elif spec.resources.gpus_per_node > 1 and not _starts_its_own(spec):
        yield Finding(
            "hint",
            "distribution",
            f"one process will see all {spec.resources.gpus_per_node} GPUs; for distributed data "
            "parallel, the right choice in most cases, choose PyTorch with process_count "
            f"{spec.resources.gpus_per_node}",
        )


def _pytorch(spec: RunSpec, distribution: PyTorchConfiguration) -> Iterator[Finding]:
    gpus, nodes, processes = spec.resources.gpus_per_node, distribution.node_count, distribution.process_count
    if processes is None:
        if gpus > 1 and not _starts_its_own(spec):
            yield Finding(
                "hint",
                "distribution.process_count",
                f"without it one process a node is started, for a launcher such as "
                f"torchrun; to have TrainHub start one for each GPU, give {gpus * nodes}",
            )
        return
    if processes % nodes:
        yield Finding("error", "distribution.process_count", indivisible(processes, nodes))
        return
    level = "error" if distribution.communication_backend == "nccl" else "warning"
    yield from _against_gpus(
        level, "distribution.process_count", processes // nodes, gpus, f"process_count {gpus * nodes}"
    )


def _mpi(spec: RunSpec, distribution: MpiConfiguration) -> Iterator[Finding]:
    gpus, processes = spec.resources.gpus_per_node, distribution.process_count_per_node
    field = "distribution.process_count_per_node"
    if processes == 1 and gpus > 1 and not _starts_its_own(spec):
        yield Finding(
            "hint",
            field,
            f"one process a node will see {gpus} GPUs; for one process on each GPU, give {gpus}",
        )
    elif processes > 1:
        yield from _against_gpus("warning", field, processes, gpus, f"process_count_per_node {gpus}")


def _against_gpus(level: str, field: str, processes: int, gpus: int, full: str) -> Iterator[Finding]:
    if gpus and processes > gpus:
        remedy = f"ask for {processes} GPUs on each node, or give at most {full}"
        message = (
            f"{processes} processes on a node with {gpus} GPU(s) asked for would share devices; {remedy}"
        )
        yield Finding("error" if level == "error" else "warning", field, message)
    elif processes < gpus:
        message = (
            f"{processes} process(es) a node leave GPUs idle unless each uses several; {full} would use all"
        )
        yield Finding("hint", field, message)


def _tensorflow(spec: RunSpec, distribution: TensorflowConfiguration) -> Iterator[Finding]:
    gpus, workers = spec.resources.gpus_per_node, distribution.worker_count
    most = max(deal(workers, spec.node_count))
    if gpus and most > gpus:
        yield Finding(
            "warning",
            "distribution.worker_count",
            f"{most} workers on a node with {gpus} GPU(s) asked for would share devices, "
            f"and each takes all their memory; ask for {most} GPUs a node or spread the workers over "
            "more nodes",
        )
    if workers % spec.node_count and workers > spec.node_count:
        yield Finding(
            "hint",
            "distribution.worker_count",
            f"{workers} workers on {spec.node_count} nodes: some nodes carry more",
        )
    # With parameter servers the strategy is another one, under which nobody calls fit().
    if (
        workers > 1
        and not distribution.parameter_server_count
        and "TF_USE_LEGACY_KERAS" not in spec.environment_variables
    ):
        yield Finding(
            "hint",
            "environment_variables",
            "Keras 3's fit() does not work under MultiWorkerMirroredStrategy; if the script "
            "calls it, add TF_USE_LEGACY_KERAS=1 and have tf-keras in the environment (a custom training "
            "loop needs neither)",
        )


def _backend(spec: RunSpec, distribution: PyTorchConfiguration) -> Iterator[Finding]:
    field, backend, gpus = (
        "distribution.communication_backend",
        distribution.communication_backend,
        spec.resources.gpus_per_node,
    )
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


def _starts_its_own(spec: RunSpec) -> bool:
    return bool(per_node_launcher(spec)) or looks_like_lightning(spec)
