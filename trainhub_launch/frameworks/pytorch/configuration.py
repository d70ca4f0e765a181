"""The configuration `"distribution": {"type": "pytorch", …}` of a spec."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.distribution import MAX_NODES, MAX_PROCESSES, Distribution, NodeCountDistribution, narrow
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.frameworks.json_schema import COUNT, COUNT_OR_NULL, configuration_schema

BACKENDS = ("nccl", "gloo", "mpi")


@dataclass(frozen=True)
class PyTorchConfiguration(NodeCountDistribution):
    """The configuration of a PyTorch run. `process_count` counts the processes of all nodes; None means one
    process per node, for the user's own launcher."""

    communication_backend: str = "nccl"
    process_count: int | None = None
    node_count: int = 1
    type: str = "pytorch"


JSON_SCHEMA = configuration_schema(
    "pytorch",
    {
        "communication_backend": {"type": "string", "enum": list(BACKENDS)},
        "process_count": {
            **COUNT_OR_NULL,
            "description": "The total of all nodes. If it is omitted, each node gets one process.",
        },
        "node_count": COUNT,
    },
)


def read(fields: Fields) -> PyTorchConfiguration:
    backend = fields.text("communication_backend", "nccl").lower()
    if backend not in BACKENDS:
        raise SpecError("distribution.communication_backend", "must be 'nccl', 'gloo' or 'mpi'")
    return PyTorchConfiguration(
        communication_backend=backend,
        process_count=fields.optional_integer("process_count", least=1, most=MAX_PROCESSES),
        node_count=fields.integer("node_count", 1, least=1, most=MAX_NODES),
    )


def summary(distribution: Distribution) -> str:
    count = narrow(distribution, PyTorchConfiguration).process_count
    return f"×{count}" if count else "per node"


def indivisible(world: int, nodes: int) -> str:
    """Returns the error message for `world` processes that cannot be divided evenly among `nodes`."""
    below = world - world % nodes
    choices = f"{below} or {below + nodes}" if below else str(nodes)
    return (
        f"{world} processes cannot be divided evenly among {nodes} nodes; use {choices}, or change node_count"
    )
