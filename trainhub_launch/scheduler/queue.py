"""Walks the queue of one cluster in order, so that later runs never delay earlier ones. Pure functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, TypeVar

from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import Placement, place
from trainhub_launch.scheduler.rejections import Refusal

Who = TypeVar("Who")


class Line(Generic[Who]):
    """The state of one walk through a queue. For each run, in order, call `ask`, and then `grant` for its
    placement or `wait` if it gets none.

    A waiting run claims what it needs on every node that it could use, because nobody knows which of them
    will be free first. Later runs get what lies beyond all claims, and nodes that are too small for the runs
    before them. So a node that is large enough for an earlier run becomes free for it no later than without
    the later runs."""

    def __init__(self, nodes: tuple[FreeNode, ...]) -> None:
        self._nodes = {node.name: node for node in nodes}
        # How much of each node is free and not claimed by a run that waits; `_nodes` holds all that is free.
        self._gpus = {node.name: len(node.gpus) for node in nodes}
        self._slots = {node.name: node.slots for node in nodes}
        self._waiting: list[tuple[Demand, Who]] = []
        self._refused: dict[Demand, Refusal] = {}
        self._large_enough: dict[Demand, frozenset[str]] = {}

    @property
    def nodes(self) -> tuple[FreeNode, ...]:
        """The nodes with all their free resources, claimed or not."""
        return tuple(self._nodes.values())

    def ask(self, demand: Demand) -> Placement | Refusal:
        """Returns a placement beyond the claims of waiting runs, or a refusal. A demand that was refused once
        stays refused, because resources only get fewer during a walk."""
        if demand in self._refused:
            return self._refused[demand]
        answer = place(demand, tuple(self._beyond(node) for node in self._nodes.values()))
        if isinstance(answer, Refusal):
            self._refused[demand] = answer
        return answer

    def chosen(self, placement: Placement) -> tuple[FreeNode, ...]:
        """Returns the nodes of a placement in their present state in this walk."""
        return tuple(self._nodes[placed.name] for placed in placement.nodes)

    def grant(self, placement: Placement) -> None:
        for placed in placement.nodes:
            node = self._nodes[placed.name]
            free_gpus = tuple(uuid for uuid in node.gpus if uuid not in placed.gpus)
            self._nodes[placed.name] = replace(node, gpus=free_gpus, slots=node.slots - placed.slots)
            self._gpus[placed.name] -= len(placed.gpus)
            self._slots[placed.name] -= placed.slots

    def wait(self, demand: Demand, who: Who) -> None:
        """Claims resources for a run that waits. A run that only a lost or closed node could serve claims
        nothing, because others would have to wait until that node returns."""
        able = self._able(demand)
        if len(able) < demand.nodes:
            return
        self._waiting.append((demand, who))
        for name in able:
            self._gpus[name] = max(0, self._gpus[name] - demand.gpus)
            self._slots[name] = max(0, self._slots[name] - demand.slots)

    def in_front(self, demand: Demand) -> Who | None:
        """Returns the last of the waiting runs that wants some of the same resources as `demand`, or None."""
        able = self._able(demand)
        for other, who in reversed(self._waiting):
            same_kind = (other.gpus and demand.gpus) or (other.slots and demand.slots)
            if same_kind and able & self._able(other):
                return who
        return None

    def _able(self, demand: Demand) -> frozenset[str]:
        # Cached by demand, because many waiting runs ask for the same, and nothing of this changes during a
        # walk.
        if demand not in self._large_enough:
            able = (node.name for node in self._nodes.values() if node.could_soon(demand))
            self._large_enough[demand] = frozenset(able)
        return self._large_enough[demand]

    def _beyond(self, node: FreeNode) -> FreeNode:
        # A claim is for a number of GPUs, so any of the free ones may be left for it.
        return replace(node, gpus=node.gpus[: self._gpus[node.name]], slots=self._slots[node.name])
