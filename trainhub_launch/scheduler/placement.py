"""Which nodes and GPUs a run gets: a pure choice, or a refusal with the sentence the user reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.rejections import Refusal, natural, never, not_now

__all__ = ["Demand", "FreeNode", "PlacedNode", "Placement", "Refusal", "place", "provisional"]


@dataclass(frozen=True)
class PlacedNode:
    """A node of a placement with the GPUs (UUIDs) and slots it gives."""

    name: str
    address: str
    gpus: tuple[str, ...]
    slots: int
    cores: int
    interface: str = ""
    infiniband: bool = False


@dataclass(frozen=True)
class Placement:
    """Nodes in node-rank order; the first is the head."""

    nodes: tuple[PlacedNode, ...]

    @property
    def head(self) -> PlacedNode:
        return self.nodes[0]


def place(wanted: Demand, nodes: tuple[FreeNode, ...]) -> Placement | Refusal:
    """Choose nodes for `wanted`, in the order of their names. A node that is silent, closed or on its way
    counts as there, and gets nothing.

    The fullest fitting nodes are taken, so that large free ones stay whole. Several nodes are all
    with InfiniBand where enough of those are free; a run on one node leaves them to others.
    """
    if nodes and sum(node.can_ever(wanted) for node in nodes) < wanted.nodes:
        return never(wanted, nodes)
    fitting = [node for node in nodes if node.can_ever(wanted) and node.can_now(wanted)]
    if len(fitting) < wanted.nodes:
        return not_now(wanted, nodes)
    connected = [node for node in fitting if node.infiniband]
    if 1 < wanted.nodes <= len(connected):
        fitting = connected
    fitting.sort(key=lambda node: _preference(wanted, node))
    chosen = sorted(fitting[: wanted.nodes], key=lambda node: natural(node.name))
    return Placement(tuple(_placed(node, wanted) for node in chosen))


def provisional(wanted: Demand, nodes: tuple[FreeNode, ...]) -> Placement | Refusal:
    """A placement for a preview: as if everything on the nodes were free, and those were chosen first that
    report."""
    here = tuple(node for node in nodes if node.takes_runs)
    found = place(wanted, tuple(_idle(node) for node in here))
    if isinstance(found, Refusal):
        found = place(wanted, tuple(_idle(node) for node in nodes))
    return never(wanted, nodes) if isinstance(found, Refusal) and found.permanent else found


def _preference(wanted: Demand, node: FreeNode) -> tuple[object, ...]:
    """Lowest first. What would make the run fail there weighs more than what would only waste the place."""
    cut_off = wanted.nodes > 1 and node.is_alone
    without_mpi = wanted.mpi and not node.mpi
    return (
        cut_off,
        without_mpi,
        node.is_coming,
        len(node.gpus),
        node.infiniband,
        node.slots,
        natural(node.name),
    )


def _idle(node: FreeNode) -> FreeNode:
    gpus = tuple(f"<GPU {index} of {node.name}>" for index in range(node.gpus_total))
    return replace(node, gpus=gpus, slots=node.slots_total, silent_s=None, is_lost=False, holds=(), closed="")


def _placed(node: FreeNode, wanted: Demand) -> PlacedNode:
    return PlacedNode(
        name=node.name,
        address=node.address,
        gpus=node.gpus[: wanted.gpus],
        slots=wanted.slots,
        cores=node.cores,
        interface=node.interface,
        infiniband=node.infiniband,
    )
