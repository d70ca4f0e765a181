"""Findings about MPI runs, about their nodes, and about runs that should be MPI runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainhub_launch.distribution import narrow
from trainhub_launch.expand import references
from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.hosts import same_host_name
from trainhub_launch.findings.process_counts import against_gpus, starts_own_processes
from trainhub_launch.findings.words import per_node_launcher, words
from trainhub_launch.frameworks.mpi.configuration import MpiConfiguration
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.scheduler.capacity import words as list_of
from trainhub_launch.spec import RunSpec

_HOROVOD = "trainhub-horovod-"
_FIELD = "distribution.process_count_per_node"


def findings(spec: RunSpec) -> Iterator[Finding]:
    per_node = narrow(spec.distribution, MpiConfiguration).process_count_per_node
    yield from _launcher_in_command(spec, per_node)
    yield from _counts(spec, per_node)
    yield from _not_the_node_rank(spec, per_node)


def _launcher_in_command(spec: RunSpec, per_node: int) -> Iterator[Finding]:
    launcher = per_node_launcher(spec)
    if launcher and per_node > 1:
        yield Finding(
            "error",
            _FIELD,
            f"{launcher} starts the processes of its node itself; give 1, "
            "and use $OMPI_COMM_WORLD_RANK as its node rank",
        )


def _counts(spec: RunSpec, per_node: int) -> Iterator[Finding]:
    gpus = spec.resources.gpus_per_node
    if per_node > 1:
        yield from against_gpus("warning", _FIELD, per_node, gpus, f"process_count_per_node {gpus}")
    elif gpus > 1 and not starts_own_processes(spec):
        yield Finding(
            "hint",
            _FIELD,
            f"one process per node will see {gpus} GPUs; for one process on each GPU, give {gpus}",
        )


def _not_the_node_rank(spec: RunSpec, per_node: int) -> Iterator[Finding]:
    use = (
        "use $OMPI_COMM_WORLD_RANK"
        if per_node == 1
        else "give process_count_per_node 1 and use $OMPI_COMM_WORLD_RANK"
    )
    for field, word in words(spec):
        if "OMPI_COMM_WORLD_NODE_RANK" in references(word):
            yield Finding(
                "warning",
                field,
                "OMPI_COMM_WORLD_NODE_RANK is not the node's rank: it counts processes on one node; "
                f"as NODE_RANK for a launcher {use}",
            )


def node_findings(
    spec: RunSpec,  # noqa: ARG001 (all MPI runs are alike)
    nodes: Sequence[FreeNode],
) -> Iterator[Finding]:
    yield from _mpirun(nodes)
    yield from same_host_name(nodes)


def _mpirun(nodes: Sequence[FreeNode]) -> Iterator[Finding]:
    without = [node.name for node in nodes if not node.mpi]
    if without:
        yield Finding(
            "warning",
            "distribution",
            f"{list_of(without)} {'reports' if len(without) == 1 else 'report'} no Open MPI: install "
            "it there (Debian: openmpi-bin), or choose an environment that contains it",
        )
        return
    majors = {node.name: _major(node.mpi_version) for node in nodes}
    if len(set(majors.values()) - {""}) > 1:
        versions = ", ".join(f"{node.name} has {node.mpi_version}" for node in nodes)
        yield Finding(
            "warning",
            "distribution",
            f"the nodes have different Open MPI: {versions}; mpirun cannot start daemons of another "
            "major version, so install the same everywhere, or choose an environment that contains it",
        )


def _major(version: str) -> str:
    """Returns the major version: `mpirun (Open MPI) 4.1.6` -> "4"; "" if it is unknown."""
    number = version.rpartition(" ")[2].partition(".")[0]
    return number if number.isdecimal() else ""


def findings_elsewhere(spec: RunSpec) -> Iterator[Finding]:
    if spec.environment.name.casefold().startswith(_HOROVOD):
        yield Finding(
            "warning",
            "distribution",
            "Horovod's processes find each other through MPI, and without it each trains alone; "
            "choose the MPI distribution with process_count_per_node",
        )
