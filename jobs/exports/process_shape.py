"""How the processes of a spec lie on nodes, in the words of other launchers."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks.mpi.configuration import MpiConfiguration
from trainhub_launch.frameworks.pytorch.configuration import PyTorchConfiguration, indivisible
from trainhub_launch.spec import RunSpec

PYTORCH, MPI = "pytorch", "mpi"


@dataclass(frozen=True)
class ProcessShape:
    """`starter`: PYTORCH if processes differ only by their ranks and torchrun could start them; MPI; "" if
    each process of the plan is written out. `per_node`: how many such processes each node has.
    `is_launcher`: the command starts the processes of its node itself."""

    nodes: int
    per_node: int
    starter: str = ""
    is_launcher: bool = False

    @property
    def world(self) -> int:
        return self.nodes * self.per_node


def process_shape(spec: RunSpec) -> ProcessShape:
    """Returns the shape of a spec. Raises SpecError if its processes cannot be divided among its nodes."""
    distribution, nodes = spec.distribution, spec.node_count
    if isinstance(distribution, PyTorchConfiguration):
        world = distribution.process_count
        if world is None:
            return ProcessShape(nodes, 1, PYTORCH, is_launcher=True)
        if world % nodes:
            raise SpecError("distribution.process_count", indivisible(world, nodes))
        return ProcessShape(nodes, world // nodes, PYTORCH)
    if isinstance(distribution, MpiConfiguration):
        return ProcessShape(nodes, distribution.process_count_per_node, MPI)
    return ProcessShape(nodes, 1)
