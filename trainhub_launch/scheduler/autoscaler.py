"""Decides how many machines a cluster's provider should create for waiting runs, and which idle ones it may
release. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainhub_launch.scheduler.capacity import Demand, FreeNode


@dataclass(frozen=True)
class Bounds:
    """Limits of a provider's nodes: the minimum and maximum number, after how many seconds without a lease a
    node may be released, and what each node offers."""

    least: int
    most: int
    idle_s: float
    gpus: int
    slots: int

    def can_make(self, demand: Demand) -> bool:
        """Returns whether a new node is large enough for `demand`."""
        return demand.has_gpus(self.gpus, self.gpus) and self.slots >= demand.slots


@dataclass(frozen=True)
class ScalableNode:
    """A node of the cluster. `idle_s`: for how many seconds it has had no lease; None = it has one.

    `is_provided`: the provider created it. `is_protected`: somebody drained it or asked to keep it, so it is
    not released automatically."""

    node: FreeNode
    is_provided: bool = True
    idle_s: float | None = None
    is_protected: bool = False


@dataclass(frozen=True)
class Decision:
    """What to change: create `add` machines, and release the nodes with the names in `release`."""

    add: int = 0
    release: tuple[str, ...] = ()


def decide(
    bounds: Bounds, nodes: Sequence[ScalableNode], coming: int, leaving: int, demands: Sequence[Demand]
) -> Decision:
    """Returns how many machines to create and which nodes to release. `coming`: machines that were requested
    and are no nodes yet; `leaving`: machines that are being released and still exist. `demands`: waiting
    runs, in the order of the queue.

    A node is only added for a run that can start once all nodes that it lacks have come: for a run that waits
    for others to end, a new node would stand idle until then, and runs behind it get nothing that it would
    have to wait for. A node is released only while no waiting run could use it, so nodes that were created
    for a run are there when its turn comes."""
    provided = sum(node.is_provided for node in nodes)
    # Machines that are still leaving exist (and may cost money) until they are gone, so they count against
    # the maximum.
    requested = provided + coming + leaving
    # A run that never fits must keep neither machines nor the runs behind it waiting.
    possible = [demand for demand in demands if _is_possible(bounds, nodes, demand)]
    lacking = max(
        _lacking(bounds, nodes, coming, bounds.most - requested, possible), bounds.least - provided - coming
    )
    return Decision(max(0, min(lacking, bounds.most - requested)), _idle(bounds, nodes, provided, possible))


def _is_possible(bounds: Bounds, nodes: Sequence[ScalableNode], demand: Demand) -> bool:
    """Returns whether the cluster at its maximum size can carry the run without an operator's help."""
    if bounds.can_make(demand):
        # Nodes that were joined by hand come on top of what the provider may make.
        able = bounds.most + sum(not item.is_provided and item.node.could_soon(demand) for item in nodes)
    else:
        able = sum(item.node.could_soon(demand) for item in nodes)
    return able >= demand.nodes


def _lacking(
    bounds: Bounds, nodes: Sequence[ScalableNode], coming: int, room: int, demands: Sequence[Demand]
) -> int:
    """Returns how many new nodes are needed by runs that can start as soon as these have come."""
    ready = [item.node for item in nodes if item.node.takes_runs]
    free = [[len(node.gpus), node.slots, node.gpus_total] for node in ready]
    # Machines on the way count with all that they will offer, so that the next call does not request them
    # again.
    free += [[bounds.gpus, bounds.slots, bounds.gpus] for _ in range(coming)]
    added = 0
    for demand in demands:
        fitting = [
            capacity
            for capacity in free
            if demand.has_gpus(capacity[0], capacity[2]) and capacity[1] >= demand.slots
        ]
        short = max(0, demand.nodes - len(fitting))
        if short and bounds.can_make(demand) and added + short > room:
            # Other runs must release nodes before this one can start, and it has precedence over all machines
            # that could be added now.
            return added
        if not bounds.can_make(demand):
            # What the provider makes is too small for this run: it uses the nodes there are, and none is
            # added for it.
            short = 0
        fresh = [[bounds.gpus, bounds.slots, bounds.gpus] for _ in range(short)]
        free += fresh
        added += short
        for left in (fitting + fresh)[: demand.nodes]:
            left[0] -= demand.gpus
            left[1] -= demand.slots
    return added


def _idle(
    bounds: Bounds, nodes: Sequence[ScalableNode], provided: int, demands: Sequence[Demand]
) -> tuple[str, ...]:
    able = [
        item
        for item in nodes
        if item.is_provided
        and item.idle_s is not None
        and not item.is_protected
        and not any(item.node.could_soon(demand) for demand in demands)
    ]
    # The longest idle first, so that the same order results each time.
    able.sort(key=lambda item: (-(item.idle_s or 0.0), item.node.name))
    above = provided - bounds.most
    spare = provided - bounds.least
    removable = [
        item.node.name
        for number, item in enumerate(able)
        # Above the maximum (for example after it was lowered) idle nodes go at once, without waiting for
        # `idle_s`.
        if number < spare and (number < above or (item.idle_s or 0.0) >= bounds.idle_s)
    ]
    return tuple(removable)
