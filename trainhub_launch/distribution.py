"""How a run is spread over processes; the names and defaults are those of Azure ML."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields

MAX_PROCESSES = 4096
MAX_TENSORFLOW_TASKS = 512
"""Every task's TF_CONFIG lists all tasks, so a plan grows with the square of them."""
MAX_NODES = 1024


@dataclass(frozen=True)
class PyTorchConfiguration:
    """`process_count` absent = one process per node, for the user's own launcher."""

    communication_backend: str = "nccl"
    process_count: int | None = None
    node_count: int = 1
    type: str = "pytorch"


@dataclass(frozen=True)
class MpiConfiguration:
    process_count_per_node: int = 1
    node_count: int = 1
    type: str = "mpi"


@dataclass(frozen=True)
class TensorflowConfiguration:
    worker_count: int = 1
    parameter_server_count: int = 0
    type: str = "tensorflow"


Distribution = PyTorchConfiguration | MpiConfiguration | TensorflowConfiguration | None


def read_distribution(fields: Fields) -> Distribution:
    """The field `distribution` of a spec; raises SpecError naming what is wrong in it."""
    if fields.raw("distribution") is None:
        return None
    part = fields.nested("distribution")
    kind = part.text("type", required=True)
    out: Distribution
    if kind == "pytorch":
        backend = part.text("communication_backend", "nccl").lower()
        if backend not in ("nccl", "gloo", "mpi"):
            raise SpecError("distribution.communication_backend", "must be 'nccl', 'gloo' or 'mpi'")
        out = PyTorchConfiguration(
            communication_backend=backend,
            process_count=part.optional_integer("process_count", least=1, most=MAX_PROCESSES),
            node_count=part.integer("node_count", 1, least=1, most=MAX_NODES),
        )
    elif kind == "mpi":
        out = MpiConfiguration(
            process_count_per_node=part.integer("process_count_per_node", 1, least=1, most=MAX_PROCESSES),
            node_count=part.integer("node_count", 1, least=1, most=MAX_NODES),
        )
    elif kind == "tensorflow":
        out = TensorflowConfiguration(
            worker_count=part.integer("worker_count", 1, least=1, most=MAX_TENSORFLOW_TASKS),
            parameter_server_count=part.integer(
                "parameter_server_count", 0, least=0, most=MAX_TENSORFLOW_TASKS
            ),
        )
    else:
        raise SpecError(
            "distribution.type",
            f"{kind!r} is not known; use 'pytorch', 'mpi' or 'tensorflow', or leave it out",
        )
    part.finish()
    return out


def check_total(distribution: Distribution) -> None:
    """No plan is larger than what a hub can make, store and show."""
    if isinstance(distribution, MpiConfiguration):
        total, most = distribution.process_count_per_node * distribution.node_count, MAX_PROCESSES
        field = "distribution.process_count_per_node"
    elif isinstance(distribution, TensorflowConfiguration):
        total, most = distribution.worker_count + distribution.parameter_server_count, MAX_TENSORFLOW_TASKS
        field = "distribution.worker_count"
    else:
        return
    if total > most:
        raise SpecError(field, f"makes {total} processes in all; at most {most} can run together")
