"""The queue of one cluster, walked from its head: who comes later never delays who waits in front. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, TypeVar

from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import Placement, place
from trainhub_launch.scheduler.rejections import Refusal

Who = TypeVar("Who")


class Line(Generic[Who]):
    """Ask for each run in the order of its turn; `grant` what it gets, or have it `wait`.

    A run that waits keeps a claim to what it needs of every node that it could use, for nobody knows which of
    them will be free first. Whoever comes later gets what lies beyond all claims, and the nodes that are too
    small for those in front: so a node that is large enough for the run in front becomes free for it no later
    than without them."""

    def __init__(self, nodes: tuple[FreeNode, ...]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._gpus = {node.name: len(node.gpus) for node in nodes}
        self._slots = {node.name: node.slots for node in nodes}
        self._waiting: list[tuple[Demand, Who]] = []
        self._refused: dict[Demand, Refusal] = {}
        self._large_enough: dict[Demand, frozenset[str]] = {}

    @property
    def nodes(self) -> tuple[FreeNode, ...]:
        """With all that is free of them, claimed or not."""
        return tuple(self._nodes.values())

    def ask(self, wanted: Demand) -> Placement | Refusal:
        """A place beyond the claims of those who wait. What was refused once stays refused: only less is
        left."""
        if wanted in self._refused:
            return self._refused[wanted]
        answer = place(wanted, tuple(self._beyond(node) for node in self._nodes.values()))
        if isinstance(answer, Refusal):
            self._refused[wanted] = answer
        return answer

    def chosen(self, placement: Placement) -> tuple[FreeNode, ...]:
        """The nodes of a placement as they stand in this line."""
        return tuple(self._nodes[placed.name] for placed in placement.nodes)

    def grant(self, placement: Placement) -> None:
        for placed in placement.nodes:
            node = self._nodes[placed.name]
            left = tuple(uuid for uuid in node.gpus if uuid not in placed.gpus)
            self._nodes[placed.name] = replace(node, gpus=left, slots=node.slots - placed.slots)
            self._gpus[placed.name] -= len(placed.gpus)
            self._slots[placed.name] -= placed.slots

    def wait(self, wanted: Demand, who: Who) -> None:
        """One that only a lost or closed node could let start claims nothing: it would keep the others
        waiting as long as that is away."""
        able = self._able(wanted)
        if len(able) < wanted.nodes:
            return
        self._waiting.append((wanted, who))
        for name in able:
            self._gpus[name] = max(0, self._gpus[name] - wanted.gpus)
            self._slots[name] = max(0, self._slots[name] - wanted.slots)

    def in_front(self, wanted: Demand) -> Who | None:
        """The last of those who wait that wants something of what `wanted` does."""
        able = self._able(wanted)
        for other, who in reversed(self._waiting):
            same_kind = (other.gpus and wanted.gpus) or (other.slots and wanted.slots)
            if same_kind and able & self._able(other):
                return who
        return None

    def _able(self, wanted: Demand) -> frozenset[str]:
        if wanted not in self._large_enough:
            able = (node.name for node in self._nodes.values() if node.could_soon(wanted))
            self._large_enough[wanted] = frozenset(able)
        return self._large_enough[wanted]

    def _beyond(self, node: FreeNode) -> FreeNode:
        return replace(node, gpus=node.gpus[: self._gpus[node.name]], slots=self._slots[node.name])
