"""Fair shares of a cluster: decayed use, factors of workspaces and people, and the order of the queue.

Pure functions. Use is counted in GPU-seconds, which lose half of their weight in a half-life."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

W = TypeVar("W", bound=Hashable)
P = TypeVar("P", bound=Hashable)

# A run that starts is charged for this many seconds at once. Otherwise many runs that start in the same
# moment would all be judged by the use before any of them.
START_CHARGE_S = 600.0
# The share of a workspace to which an operator has given none.
DEFAULT_SHARE = 1.0
# A process without a GPU weighs as much as this part of a GPU.
SLOT_WEIGHT = 1 / 16


def weight(gpus: int, slots: int) -> float:
    """Returns what a run counts per second, in GPUs."""
    return gpus + slots * SLOT_WEIGHT


def decay(seconds: float, half_life_s: float) -> float:
    """Returns what is left of 1 after this time. A clock that went back (negative time) changes nothing.

    `decay(a + b) == decay(a) * decay(b)`, so it does not matter how often use is looked at."""
    return math.exp2(-max(0.0, seconds) / half_life_s)


def decayed_span(start: float, end: float, now: float, half_life_s: float) -> float:
    """Returns the use, as of `now`, of 1 GPU that was held from `start` until `end` (seconds of one clock).

    Exact for any length: the integral of the decay over the span. What lies after `now` does not count."""
    end = min(end, now)
    if end <= start:
        return 0.0
    return half_life_s / math.log(2) * (decay(now - end, half_life_s) - decay(now - start, half_life_s))


def charge(start: float, end: float, now: float, half_life_s: float) -> float:
    """Returns `decayed_span` with the charge for the start."""
    return START_CHARGE_S * decay(now - start, half_life_s) + decayed_span(start, end, now, half_life_s)


@dataclass(frozen=True)
class Account:
    """Use that was added up: the amount in GPU-seconds, as of a time in seconds."""

    amount: float = 0.0
    as_of: float = 0.0

    def at(self, now: float, half_life_s: float) -> float:
        """Returns what is left of it `now`; for a time before `as_of` all of it."""
        return self.amount * decay(now - self.as_of, half_life_s)

    def plus(self, amount: float, now: float, half_life_s: float) -> Account:
        """Returns the account with an amount as of `now`."""
        return Account(self.at(now, half_life_s) + amount, max(now, self.as_of))


def factor(used: float, share: float) -> float:
    """Returns the fair-share factor, from 0 to 1: 1 without any use, 1/2 at exactly the share, 0 without a
    share. `used` and `share` are parts of the whole, from 0 to 1."""
    return 0.0 if share <= 0 else math.exp2(-used / share)


@dataclass(frozen=True)
class Standing:
    """How a workspace (or a person) stands: the parts of the use and of the shares that it has, 0 to 1."""

    used: float
    share: float

    @property
    def factor(self) -> float:
        return factor(self.used, self.share)


def standings(use: Mapping[W, float], shares: Mapping[W, float], active: Iterable[W]) -> dict[W, Standing]:
    """Returns the standing of each active one: those with running or waiting runs. The share of the others
    is lent to them."""
    names = list(active)
    whole = sum(share_of(name, shares) for name in names)
    total = sum(use.values())
    return {
        name: Standing(
            use.get(name, 0.0) / total if total > 0 else 0.0,
            share_of(name, shares) / whole if whole > 0 else 0.0,
        )
        for name in names
    }


def share_of(name: W, shares: Mapping[W, float]) -> float:
    return max(0.0, shares.get(name, DEFAULT_SHARE))


@dataclass(frozen=True, order=True)
class Turn(Generic[W, P]):
    """A waiting run as the order sees it; turns compare by age. `submitted_at`: when the run was submitted
    (seconds), which a run that is queued again keeps. `claimed_at`: since when it is at the head and keeps
    its claim, None = it is not. `weight`: see `weight`, over all nodes."""

    submitted_at: float
    run: str
    workspace: W = field(compare=False)
    person: P = field(compare=False)
    priority: int = field(default=0, compare=False)
    weight: float = field(default=1.0, compare=False)
    claimed_at: float | None = field(default=None, compare=False)


class FairQueue(Generic[W, P]):
    """The waiting runs of a cluster. `order` gives them by priority; among equals first those at the head,
    which keep their claims; then by the fair-share factor of the workspace and, within it, of the person; and
    of one person the oldest first."""

    def __init__(self, turns: Iterable[Turn[W, P]] = ()) -> None:
        self._classes: dict[int, dict[W, dict[P, list[Turn[W, P]]]]] = {}
        self._heads: dict[int, list[Turn[W, P]]] = {}
        for turn in turns:
            self.add(turn)

    def add(self, turn: Turn[W, P]) -> None:
        if turn.claimed_at is not None:
            self._heads.setdefault(turn.priority, []).append(turn)
            return
        people = self._classes.setdefault(turn.priority, {}).setdefault(turn.workspace, {})
        insort(people.setdefault(turn.person, []), turn)

    def remove(self, turn: Turn[W, P]) -> None:
        """Removes the turn. Raises KeyError if it does not wait."""
        if turn.claimed_at is not None:
            self._heads[turn.priority].remove(turn)
            return
        people = self._classes[turn.priority][turn.workspace]
        waiting = people[turn.person]
        place = bisect_left(waiting, turn)
        if place == len(waiting) or waiting[place] != turn:
            raise KeyError(turn.run)
        del waiting[place]
        if not waiting:
            del people[turn.person]

    def heads(self) -> list[Turn[W, P]]:
        """Returns the turns at the head, which keep their claims."""
        return [turn for turns in self._heads.values() for turn in turns]

    def copy(self) -> FairQueue[W, P]:
        """Returns an independent queue of the same turns."""
        queue: FairQueue[W, P] = FairQueue()
        queue._heads = {priority: list(turns) for priority, turns in self._heads.items()}
        queue._classes = {
            priority: {
                workspace: {person: list(turns) for person, turns in people.items()}
                for workspace, people in workspaces.items()
            }
            for priority, workspaces in self._classes.items()
        }
        return queue

    def order(self, use: Mapping[tuple[W, P], float], shares: Mapping[W, float]) -> Iterator[Turn[W, P]]:
        """Yields the turns in order. Each one that was yielded counts as started for those after it.

        `use`: the decayed use of each person in each workspace, in GPU-seconds."""
        by_person = dict(use)
        by_workspace: dict[W, float] = {}
        for (workspace, _), amount in use.items():
            by_workspace[workspace] = by_workspace.get(workspace, 0.0) + amount
        for priority in sorted(self._classes.keys() | self._heads.keys(), reverse=True):
            first = sorted(self._heads.get(priority, ()), key=lambda turn: (turn.claimed_at or 0.0, turn))
            rest = _by_factor(self._classes.get(priority, {}), by_workspace, by_person, shares)
            for turns in (first, rest):
                for turn in turns:
                    _charge_start(turn, by_workspace, by_person)
                    yield turn


def _charge_start(
    turn: Turn[W, P], by_workspace: dict[W, float], by_person: dict[tuple[W, P], float]
) -> None:
    amount = turn.weight * START_CHARGE_S
    key = turn.workspace, turn.person
    by_workspace[turn.workspace] = by_workspace.get(turn.workspace, 0.0) + amount
    by_person[key] = by_person.get(key, 0.0) + amount


def _by_factor(
    waiting: Mapping[W, Mapping[P, list[Turn[W, P]]]],
    by_workspace: Mapping[W, float],
    by_person: Mapping[tuple[W, P], float],
    shares: Mapping[W, float],
) -> Iterator[Turn[W, P]]:
    """Yields the turns of one priority; the use may change after each."""
    # Heaps of what comes next: of each person by their use, and of each workspace by use per share. The order
    # by U/S is the order by the factor, without its loss of precision near 0.
    workspaces: list[tuple[float, Turn[W, P], list[tuple[float, Turn[W, P], int]]]] = []
    for workspace, people in waiting.items():
        candidates = [(by_person.get((workspace, who), 0.0), own[0], 0) for who, own in people.items() if own]
        if candidates:
            heapq.heapify(candidates)
            load = _load(workspace, by_workspace, shares)
            workspaces.append((load, candidates[0][1], candidates))
    heapq.heapify(workspaces)
    while workspaces:
        _, turn, candidates = heapq.heappop(workspaces)
        _, _, place = heapq.heappop(candidates)
        yield turn
        own = waiting[turn.workspace][turn.person]
        if place + 1 < len(own):
            used = by_person.get((turn.workspace, turn.person), 0.0)
            heapq.heappush(candidates, (used, own[place + 1], place + 1))
        if candidates:
            load = _load(turn.workspace, by_workspace, shares)
            heapq.heappush(workspaces, (load, candidates[0][1], candidates))


def _load(workspace: W, by_workspace: Mapping[W, float], shares: Mapping[W, float]) -> float:
    share = share_of(workspace, shares)
    return by_workspace.get(workspace, 0.0) / share if share > 0 else math.inf
