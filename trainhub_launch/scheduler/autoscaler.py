"""How many nodes a cluster's provider is to make for those who wait, and which idle ones it may release.
Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainhub_launch.scheduler.capacity import Demand, FreeNode


@dataclass(frozen=True)
class Bounds:
    """Of the provider's nodes: how many there are at least and at most, after how many seconds without a
    lease one goes, and what each offers."""

    least: int
    most: int
    idle_s: float
    gpus: int
    slots: int

    def can_make(self, wanted: Demand) -> bool:
        """Whether a node that comes is large enough."""
        return self.gpus >= wanted.gpus and self.slots >= wanted.slots


@dataclass(frozen=True)
class Standing:
    """A node of the cluster. `idle_s`: for how long it has held nothing; None = it holds something.

    `is_provided`: the provider made it. `is_kept`: somebody drained it or keeps it otherwise, so it is not
    released unasked."""

    node: FreeNode
    is_provided: bool = True
    idle_s: float | None = None
    is_kept: bool = False


@dataclass(frozen=True)
class Decision:
    """`add` machines, and `release` the nodes of these names."""

    add: int = 0
    release: tuple[str, ...] = ()


def decide(
    bounds: Bounds, nodes: Sequence[Standing], coming: int, leaving: int, demands: Sequence[Demand]
) -> Decision:
    """`coming`: machines that were asked for and are no nodes yet; `leaving`: machines that are not gone yet.

    A node is only added for a run that can start once all that it lacks has come: a run that waits for others
    to end gets nothing that would stand idle until then, and nobody behind it is given what it would have to
    wait for. A node goes only while nobody who waits could use it, so what was made for a run is there when
    its turn comes."""
    provided = sum(node.is_provided for node in nodes)
    asked = provided + coming + leaving
    possible = [wanted for wanted in demands if _is_possible(bounds, nodes, wanted)]
    lacking = max(
        _lacking(bounds, nodes, coming, bounds.most - asked, possible), bounds.least - provided - coming
    )
    return Decision(max(0, min(lacking, bounds.most - asked)), _idle(bounds, nodes, provided, possible))


def _is_possible(bounds: Bounds, nodes: Sequence[Standing], wanted: Demand) -> bool:
    """Whether the cluster at its largest can carry it without somebody's help."""
    if bounds.can_make(wanted):
        able = bounds.most + sum(not item.is_provided and item.node.could_soon(wanted) for item in nodes)
    else:
        able = sum(item.node.could_soon(wanted) for item in nodes)
    return able >= wanted.nodes


def _lacking(
    bounds: Bounds, nodes: Sequence[Standing], coming: int, room: int, demands: Sequence[Demand]
) -> int:
    """How many new nodes the runs need that can start once these are there."""
    free = [[len(item.node.gpus), item.node.slots] for item in nodes if item.node.takes_runs]
    free += [[bounds.gpus, bounds.slots] for _ in range(coming)]
    added = 0
    for wanted in demands:
        fitting = [left for left in free if left[0] >= wanted.gpus and left[1] >= wanted.slots]
        short = max(0, wanted.nodes - len(fitting))
        if short and bounds.can_make(wanted) and added + short > room:
            # What it lacks must be let go by others first, and it then stands in front of all that could be
            # added now.
            return added
        if not bounds.can_make(wanted):
            short = 0
        fresh = [[bounds.gpus, bounds.slots] for _ in range(short)]
        free += fresh
        added += short
        for left in (fitting + fresh)[: wanted.nodes]:
            left[0] -= wanted.gpus
            left[1] -= wanted.slots
    return added


def _idle(
    bounds: Bounds, nodes: Sequence[Standing], provided: int, demands: Sequence[Demand]
) -> tuple[str, ...]:
    able = [
        item
        for item in nodes
        if item.is_provided
        and item.idle_s is not None
        and not item.is_kept
        and not any(item.node.could_soon(wanted) for wanted in demands)
    ]
    able.sort(key=lambda item: (-(item.idle_s or 0.0), item.node.name))
    above = provided - bounds.most
    spare = provided - bounds.least
    gone = [
        item.node.name
        for number, item in enumerate(able)
        if number < spare and (number < above or (item.idle_s or 0.0) >= bounds.idle_s)
    ]
    return tuple(gone)
