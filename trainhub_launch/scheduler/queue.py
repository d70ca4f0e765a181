"""Walks the queue of one cluster in order, so that later runs never delay earlier ones. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import Placement, place
from trainhub_launch.scheduler.rejections import Refusal, never

Who = TypeVar("Who")

_CLAIMED = Refusal("Other runs claim what is free.", "resources.cluster", permanent=False)


class Release(NamedTuple):
    """Resources of a node that a running run gives back after `after_s` seconds at the latest."""

    after_s: float
    gpus: int
    slots: int


class Line(Generic[Who]):
    """The state of one walk through a queue. For each run, in order, call `ask`, and then `grant` for its
    placement or `wait` if it gets none.

    A waiting run claims what it needs on every node that it could use, because nobody knows which of them
    will be free first. Later runs get what lies beyond all claims, and nodes that are too small for the runs
    before them. So a node that is large enough for an earlier run becomes free for it no later than without
    the later runs.

    A run at the head (no waiting run in front wants the same) lends what it claims, if the time at which it
    can start is known from the time limits of the running runs (`releases`, by the node's name): a run whose
    own time limit ends before that gets claimed resources."""

    def __init__(
        self, nodes: tuple[FreeNode, ...], releases: Mapping[str, Sequence[Release]] | None = None
    ) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._releases = {name: list(items) for name, items in (releases or {}).items()}
        # How much of each node is free and not claimed by a run that waits; `_nodes` holds all that is free.
        self._gpus = {node.name: len(node.gpus) for node in nodes}
        self._slots = {node.name: node.slots for node in nodes}
        self._memory = {node.name: node.memory for node in nodes}
        self._cpus = {node.name: node.cpus for node in nodes}
        # What runs at the head lend of their claims, and after how many seconds they need it.
        self._lent_gpus = dict.fromkeys(self._nodes, 0)
        self._lent_slots = dict.fromkeys(self._nodes, 0)
        self._lent_for_s: dict[str, float] = {}
        self._waiting: list[tuple[Demand, Who]] = []
        # The runs at the head, and after how many seconds they start at the latest (None: unknown).
        self.heads: dict[Who, float | None] = {}
        self._refused: dict[Demand, Refusal] = {}
        self._large_enough: dict[Demand, frozenset[str]] = {}
        # Demands of waiting runs for which nothing is left to claim.
        self._exhausted: set[Demand] = set()

    @property
    def nodes(self) -> tuple[FreeNode, ...]:
        """The nodes with all their free resources, claimed or not."""
        return tuple(self._nodes.values())

    @property
    def waiting_count(self) -> int:
        """How many runs wait so far."""
        return len(self._waiting)

    def ask(self, demand: Demand) -> Placement | Refusal:
        """Returns a placement beyond the claims of waiting runs, or a refusal. A demand that was refused once
        stays refused until more is lent, because resources only get fewer during a walk."""
        if demand in self._refused:
            return self._refused[demand]
        answer = self._try(demand, borrows=False)
        if isinstance(answer, Refusal) and not answer.permanent and self._may_borrow(demand):
            answer = self._try(demand, borrows=True)
        if isinstance(answer, Refusal):
            self._refused[demand] = answer
        return answer

    def ask_with(self, demand: Demand, own: Mapping[str, tuple[tuple[str, ...], int]]) -> Placement | Refusal:
        """Like `ask`, for a run for which resources are reserved: node name -> its GPUs and process slots."""
        nodes = []
        for node in self.nodes:
            beyond = self._beyond(node, demand, borrows=False)
            gpus, slots = own.get(node.name, ((), 0))
            nodes.append(replace(beyond, gpus=(*gpus, *beyond.gpus), slots=beyond.slots + slots))
        return place(demand, tuple(nodes))

    def has_room(self, demand: Demand) -> bool:
        """Returns whether `ask` would answer with a placement, without making it."""
        if demand in self._refused:
            return False
        if self._fitting(demand, borrows=self._may_borrow(demand)) >= demand.nodes:
            return True
        is_permanent = bool(self._nodes) and not self._is_large_enough(demand)
        self._refused[demand] = never(demand, self.nodes) if is_permanent else _CLAIMED
        return False

    def chosen(self, placement: Placement) -> tuple[FreeNode, ...]:
        """Returns the nodes of a placement in their present state in this walk."""
        return tuple(self._nodes[placed.name] for placed in placement.nodes)

    def grant(
        self,
        placement: Placement,
        demand: Demand | None = None,
        own: Mapping[str, tuple[tuple[str, ...], int]] | None = None,
    ) -> None:
        """Takes the resources of a placement. `demand`: what it was made for, if it may have borrowed. `own`:
        what was reserved for it."""
        for placed in placement.nodes:
            node = self._nodes[placed.name]
            free_gpus = tuple(uuid for uuid in node.gpus if uuid not in placed.gpus)
            taken = len(node.gpus) - len(free_gpus)
            needed_slots = max(0, placed.slots - (own or {}).get(placed.name, ((), 0))[1])
            self._nodes[placed.name] = replace(node, gpus=free_gpus, slots=node.slots - needed_slots)
            if demand is not None:
                self._take_rest(placed.name, demand)
            gpus, slots = self._borrow(placed.name, taken, needed_slots, demand)
            self._gpus[placed.name] -= gpus
            self._slots[placed.name] -= slots
            if demand is not None and demand.limit_s is not None:
                release = Release(demand.limit_s, len(placed.gpus), placed.slots)
                self._releases.setdefault(placed.name, []).append(release)

    def wait(self, demand: Demand, who: Who) -> bool:
        """Claims resources for a run that waits, and returns whether it is at the head. A run that only a
        lost or closed node could serve claims nothing, because others would have to wait until that node
        returns."""
        able = self._able(demand)
        if len(able) < demand.nodes:
            return False
        is_head = self.in_front(demand) is None
        start_s = self.start_s(demand) if is_head else None
        if is_head:
            self.heads[who] = start_s
        self._waiting.append((demand, who))
        for name in able:
            gpus, slots = min(self._gpus[name], demand.gpus), min(self._slots[name], demand.slots)
            self._gpus[name] -= gpus
            self._slots[name] -= slots
            # Memory and cores are claimed, too, but never lent.
            self._memory[name] -= min(self._memory[name], demand.memory_bytes)
            self._cpus[name] -= min(self._cpus[name], demand.cpus)
            if start_s is not None:
                self._lent_gpus[name] += gpus
                self._lent_slots[name] += slots
                self._lent_for_s[name] = min(start_s, self._lent_for_s.get(name, math.inf))
        if start_s is not None:
            self._refused = {
                key: refusal
                for key, refusal in self._refused.items()
                if refusal.permanent or not self._may_borrow(key)
            }
        return is_head

    def is_out_of_reach(self, demand: Demand) -> bool:
        """Returns whether nothing changes any more for runs with this demand: it was refused, a run in front
        waits for the same, and nothing is left that they could claim. It may be false again after a run at
        the head has lent what it claims."""
        refusal = self._refused.get(demand)
        if refusal is None or refusal.permanent or self.in_front(demand) is None:
            return False
        if demand not in self._exhausted and not self._has_claimable(demand):
            self._exhausted.add(demand)
        return demand in self._exhausted

    def _has_claimable(self, demand: Demand) -> bool:
        # Once nothing is left of a node, nothing comes back during a walk.
        return any(
            min(self._gpus[name], demand.gpus)
            or min(self._slots[name], demand.slots)
            or min(self._memory[name], demand.memory_bytes)
            or min(self._cpus[name], demand.cpus)
            for name in self._able(demand)
        )

    def append(self, demand: Demand, who: Who) -> None:
        """Lets a run wait that can neither get nor claim anything (`is_out_of_reach`), as `wait` does."""
        if len(self._able(demand)) >= demand.nodes:
            self._waiting.append((demand, who))

    def in_front(self, demand: Demand) -> Who | None:
        """Returns the last of the waiting runs that wants some of the same resources as `demand`, or None."""
        able = self._able(demand)
        for other, who in reversed(self._waiting):
            same_kind = (other.gpus and demand.gpus) or (other.slots and demand.slots)
            if same_kind and (other is demand or not able.isdisjoint(self._able(other))):
                return who
        return None

    def start_s(self, demand: Demand) -> float | None:
        """Returns after how many seconds enough nodes have room for `demand` if the running runs take all of
        their time; None if that depends on runs without a time limit, or on nodes that do not report."""
        times = sorted(self._room_s(self._nodes[name], demand) for name in self._able(demand))
        start = times[demand.nodes - 1] if len(times) >= demand.nodes else math.inf
        return start if math.isfinite(start) else None

    def _room_s(self, node: FreeNode, demand: Demand) -> float:
        if not node.takes_runs:
            return math.inf
        gpus, slots, at = len(node.gpus), node.slots, 0.0
        for release in sorted(self._releases.get(node.name, ())):
            if gpus >= demand.gpus and slots >= demand.slots:
                break
            gpus, slots, at = gpus + release.gpus, slots + release.slots, max(0.0, release.after_s)
        return at if gpus >= demand.gpus and slots >= demand.slots else math.inf

    def _try(self, demand: Demand, *, borrows: bool) -> Placement | Refusal:
        # Counted first: most runs of a long queue are refused, and what follows is built for each node.
        if self._fitting(demand, borrows=borrows) < demand.nodes and self._is_large_enough(demand):
            return _CLAIMED
        # A claim is for a number of GPUs, so any of the free ones may be left for it.
        return place(demand, tuple(self._beyond(node, demand, borrows=borrows) for node in self.nodes))

    def _fitting(self, demand: Demand, *, borrows: bool) -> int:
        """Returns how many nodes have room for `demand`."""
        count = 0
        for name, node in self._nodes.items():
            gpus, slots = self._room(name, demand, borrows=borrows)
            has_limits = self._memory[name] >= demand.memory_bytes and self._cpus[name] >= demand.cpus
            count += gpus >= demand.gpus and slots >= demand.slots and has_limits and node.can_now(demand)
        return count

    def _take_rest(self, name: str, demand: Demand) -> None:
        """Takes memory, CPU cores and room for data."""
        node = self._nodes[name]
        memory, cpus = node.memory - demand.memory_bytes, node.cpus - demand.cpus
        data = node.data.with_use(demand.data)
        self._nodes[name] = replace(node, memory=max(0, memory), cpus=max(0.0, cpus), data=data)
        self._memory[name] = max(0, self._memory[name] - demand.memory_bytes)
        self._cpus[name] = max(0.0, self._cpus[name] - demand.cpus)

    def _is_large_enough(self, demand: Demand) -> bool:
        return sum(node.can_ever(demand) for node in self.nodes) >= demand.nodes

    def _beyond(self, node: FreeNode, demand: Demand, *, borrows: bool) -> FreeNode:
        gpus, slots = self._room(node.name, demand, borrows=borrows)
        memory, cpus = self._memory[node.name], self._cpus[node.name]
        # Mostly no run claims anything of it, and a cluster has hundreds of nodes.
        if (gpus, slots, memory, cpus) == (len(node.gpus), node.slots, node.memory, node.cpus):
            return node
        return replace(node, gpus=node.gpus[:gpus], slots=slots, memory=memory, cpus=cpus)

    def _room(self, name: str, demand: Demand, *, borrows: bool) -> tuple[int, int]:
        gpus, slots = self._gpus[name], self._slots[name]
        if borrows and self._lends(name, demand):
            return gpus + self._lent_gpus[name], slots + self._lent_slots[name]
        return gpus, slots

    def _may_borrow(self, demand: Demand) -> bool:
        return demand.limit_s is not None and any(self._lends(name, demand) for name in self._lent_for_s)

    def _lends(self, name: str, demand: Demand) -> bool:
        return demand.limit_s is not None and demand.limit_s <= self._lent_for_s.get(name, -1.0)

    def _borrow(self, name: str, gpus: int, slots: int, demand: Demand | None) -> tuple[int, int]:
        """Returns what is left to take beyond the claims: what can be borrowed is borrowed."""
        if demand is None or not self._lends(name, demand):
            return gpus, slots
        lent_gpus, lent_slots = min(gpus, self._lent_gpus[name]), min(slots, self._lent_slots[name])
        self._lent_gpus[name] -= lent_gpus
        self._lent_slots[name] -= lent_slots
        return gpus - lent_gpus, slots - lent_slots

    def _able(self, demand: Demand) -> frozenset[str]:
        # Cached by demand, because many waiting runs ask for the same, and nothing of this changes during a
        # walk.
        if demand not in self._large_enough:
            able = (node.name for node in self._nodes.values() if node.could_soon(demand))
            self._large_enough[demand] = frozenset(able)
        return self._large_enough[demand]
