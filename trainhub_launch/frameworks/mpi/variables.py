"""Rules about the environment variables of MPI runs."""

from __future__ import annotations

from trainhub_launch.spec import RunSpec

OVERRIDABLE = frozenset({"OMPI_MCA_btl_tcp_if_include"})
# Variable of a PyTorch run -> its name under Open MPI.
FROM_PYTORCH = {
    "RANK": "OMPI_COMM_WORLD_RANK",
    "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
    "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
    "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
}


def remedy(spec: RunSpec, name: str) -> str:  # noqa: ARG001 (the shape of `VariableRules.remedy`)
    if name == "NODE_RANK":
        return "in an MPI run with process_count_per_node 1 it is $OMPI_COMM_WORLD_RANK"
    return f"in an MPI run it is ${FROM_PYTORCH[name]}" if name in FROM_PYTORCH else ""


def suggestion(name: str) -> str:
    return "choose the MPI distribution, under which Open MPI sets it" if name.startswith("OMPI_") else ""
