"""Chooses the runs that give up their resources so that a whole run of higher priority starts. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainhub_launch.scheduler.capacity import Demand, FreeNode

# So many sets of victims are looked at before the search settles for a good one instead of the best.
MAX_SETS = 5000


class Part(NamedTuple):
    """What a run gives back on one node. `memory` (bytes) and `cpus`: what it has reserved there."""

    gpus: int
    slots: int
    memory: int = 0
    cpus: float = 0.0


@dataclass(frozen=True)
class Candidate:
    """A running run that may be preempted. `lost`: the GPU-seconds that are lost with it. `parts`: by the
    names of its nodes."""

    run: str
    lost: float
    parts: Mapping[str, Part]


def choose_victims(
    demand: Demand, nodes: Sequence[FreeNode], candidates: Iterable[Candidate]
) -> tuple[Candidate, ...]:
    """Returns the candidates that lose the fewest GPU-seconds among those sets whose end lets all of `demand`
    start on `nodes`, which offer what is free now; () if no set does, or none is needed."""
    able = [node for node in nodes if node.takes_runs and node.could_soon(demand)]
    names = {node.name for node in able}
    # The cheapest first; ties by the run, so that the same input gives the same victims.
    useful = sorted(
        (item for item in candidates if names & item.parts.keys()), key=lambda item: (item.lost, item.run)
    )
    if _fits(demand, able, ()) or not _fits(demand, able, useful):
        return ()
    # Sets by what they lose: each is extended by later candidates only, so none comes twice.
    sets: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for _ in range(MAX_SETS):
        lost, chosen = heapq.heappop(sets)
        victims = tuple(useful[place] for place in chosen)
        if _fits(demand, able, victims):
            return victims
        for place in range(chosen[-1] + 1 if chosen else 0, len(useful)):
            heapq.heappush(sets, (lost + useful[place].lost, (*chosen, place)))
    return _without_spare(demand, able, useful)


def _without_spare(
    demand: Demand, nodes: Sequence[FreeNode], candidates: Sequence[Candidate]
) -> tuple[Candidate, ...]:
    """Returns a set of which none is spare: all, without those that are not needed, the dearest first."""
    victims = list(candidates)
    for candidate in reversed(candidates):
        rest = [item for item in victims if item is not candidate]
        if _fits(demand, nodes, rest):
            victims = rest
    return tuple(victims)


def _fits(demand: Demand, nodes: Sequence[FreeNode], victims: Sequence[Candidate]) -> bool:
    count = 0
    for node in nodes:
        given_back = [item.parts[node.name] for item in victims if node.name in item.parts]
        gpus = len(node.gpus) + sum(part.gpus for part in given_back)
        slots = node.slots + sum(part.slots for part in given_back)
        memory = node.memory + sum(part.memory for part in given_back)
        cpus = node.cpus + sum(part.cpus for part in given_back)
        has_limits = memory >= demand.memory_bytes and cpus >= demand.cpus
        count += gpus >= demand.gpus and slots >= demand.slots and has_limits
    return count >= demand.nodes
