"""Rules about the environment variables of PyTorch runs."""

from __future__ import annotations

from trainhub_launch.processes import elastic
from trainhub_launch.spec import RunSpec

OVERRIDABLE = elastic.OVERRIDABLE
# TrainHub sets these if it starts every process; otherwise the user's launcher does.
PER_PROCESS = frozenset({"LOCAL_RANK", "LOCAL_WORLD_SIZE"})
_ALL = PER_PROCESS | {"RANK", "WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"}
_FROM_OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "RANK",
    "OMPI_COMM_WORLD_SIZE": "WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK": "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_NODE_RANK": "NODE_RANK",
}


def remedy(spec: RunSpec, name: str) -> str:  # noqa: ARG001 (the shape of `VariableRules.remedy`)
    if name in PER_PROCESS:
        return (
            "it is set where TrainHub starts every process: give process_count, or let your launcher set it"
        )
    return f"in a PyTorch run it is ${_FROM_OPEN_MPI[name]}" if name in _FROM_OPEN_MPI else ""


def suggestion(name: str) -> str:
    return "choose the PyTorch distribution, which sets it" if name in _ALL else ""
