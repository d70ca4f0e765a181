"""Chooses the nodes and GPUs of a run, or refuses with a sentence for the user. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.rejections import Refusal, natural, never, not_now

# Of data: a node that need not download so much is preferred to a fuller one.
LARGE_DOWNLOAD_BYTES = 1024**3

__all__ = ["Demand", "FreeNode", "PlacedNode", "Placement", "Refusal", "place", "provisional"]


@dataclass(frozen=True)
class PlacedNode:
    """A node of a placement with the GPUs (UUIDs) and slots that the run gets there."""

    name: str
    address: str
    gpus: tuple[str, ...]
    slots: int
    cores: int
    interface: str = ""
    infiniband: bool = False


@dataclass(frozen=True)
class Placement:
    """The nodes of a run in the order of node ranks; the first is the head."""

    nodes: tuple[PlacedNode, ...]

    @property
    def head(self) -> PlacedNode:
        return self.nodes[0]


def place(demand: Demand, nodes: tuple[FreeNode, ...]) -> Placement | Refusal:
    """Chooses nodes for `demand`; ranks follow the order of their names. A silent, closed or coming node
    counts towards the size of the cluster, but is never chosen.

    Nodes that have the run's data are taken first, then the fullest fitting ones, so that large free ones
    stay whole. A run on several nodes gets only nodes with InfiniBand if enough of them are free; a run on
    one node leaves them to others."""
    large_enough = [node for node in nodes if node.can_ever(demand)]
    # Without any node the run waits for one to join, so that is no permanent refusal.
    if nodes and len(large_enough) < demand.nodes:
        return never(demand, nodes)
    fitting = [node for node in large_enough if node.can_now(demand)]
    if len(fitting) < demand.nodes:
        return not_now(demand, nodes)
    connected = [node for node in fitting if node.infiniband]
    # A run on one node has no use for InfiniBand and does not look for it.
    if 1 < demand.nodes <= len(connected):
        fitting = connected
    fitting.sort(key=lambda node: _preference(demand, node))
    # Ranks follow the names of the nodes, so that rank 0 is where people expect it.
    chosen = sorted(fitting[: demand.nodes], key=lambda node: natural(node.name))
    return Placement(tuple(_placed(node, demand) for node in chosen))


def provisional(demand: Demand, nodes: tuple[FreeNode, ...]) -> Placement | Refusal:
    """Returns a placement for a preview: as if all resources of the nodes were free, and preferring nodes
    that report and GPUs that work."""
    here = [node for node in nodes if node.takes_runs]
    # A preview should show what the run can get, but GPUs that are lost or unhealthy, and then nodes that are
    # silent or drained, are better than none.
    placement = place(demand, tuple(node.idle for node in here))
    if isinstance(placement, Refusal):
        placement = place(demand, tuple(node.with_all_free(node.gpus_total) for node in here))
    if isinstance(placement, Placement):
        return placement
    last = place(demand, tuple(node.with_all_free(node.gpus_total) for node in nodes))
    return never(demand, nodes) if isinstance(last, Refusal) and last.permanent else last


def _preference(demand: Demand, node: FreeNode) -> tuple[object, ...]:
    """Returns a sort key, lowest first. What would make the run fail on a node weighs more than what would
    only waste resources."""
    cut_off = demand.nodes > 1 and node.is_alone
    without_mpi = demand.mpi and not node.mpi
    download = node.data.missing_bytes(demand.data)
    return (
        cut_off,
        without_mpi,
        node.is_coming,
        download // LARGE_DOWNLOAD_BYTES,
        # The fullest fitting node first: large free ones stay whole for runs that need them.
        len(node.gpus),
        node.infiniband,
        node.slots,
        download,
        natural(node.name),
    )


def _placed(node: FreeNode, demand: Demand) -> PlacedNode:
    return PlacedNode(
        name=node.name,
        address=node.address,
        gpus=node.gpus[: demand.gpus],
        slots=demand.slots,
        cores=node.cores,
        interface=node.interface,
        infiniband=node.infiniband,
    )
