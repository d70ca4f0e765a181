"""A walk through a queue that passes over runs which are out of reach gives out, claims and heads the same as
one that asks for each run."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from trainhub_launch.machine import CGROUP
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import PlacedNode
from trainhub_launch.scheduler.queue import Line, Release
from trainhub_launch.scheduler.rejections import Refusal

GIB = 2**30


@dataclass
class Outcome:
    placements: dict[int, tuple[PlacedNode, ...]] = field(default_factory=dict)
    refused_for_ever: set[int] = field(default_factory=set)
    behind: dict[int, int | None] = field(default_factory=dict)
    heads: dict[int, float | None] = field(default_factory=dict)


def make_nodes(dice: random.Random) -> tuple[FreeNode, ...]:
    nodes = []
    for number in range(dice.randint(1, 6)):
        total = dice.choice([0, 2, 4, 8])
        free = dice.randint(0, total)
        slots = dice.randint(2, 8)
        nodes.append(
            FreeNode(
                name=f"node-{number}",
                address=f"10.0.0.{number}",
                gpus=tuple(f"GPU-{number}-{index}" for index in range(free)),
                gpus_total=total,
                slots=dice.randint(0, slots),
                slots_total=slots,
                cores=8,
                memory=dice.randint(0, 64) * GIB,
                memory_total=64 * GIB,
                cpus=float(dice.randint(0, 8)),
                has_limits=True,
                capabilities=frozenset({CGROUP}),
                is_lost=dice.random() < 0.1,
                closed="is drained" if dice.random() < 0.1 else "",
            )
        )
    return tuple(nodes)


def make_demands(dice: random.Random) -> list[Demand]:
    kinds = []
    for _ in range(dice.randint(1, 6)):
        gpus = dice.choice([0, 1, 1, 2, 4, 8])
        kinds.append(
            Demand(
                nodes=dice.choice([1, 1, 1, 2, 3]),
                gpus=gpus,
                slots=0 if gpus else dice.randint(1, 3),
                memory_bytes=dice.choice([0, 0, 0, 8 * GIB]),
                cpus=dice.choice([0.0, 0.0, 2.0]),
                limit_s=dice.choice([None, None, 300, 4000]),
            )
        )
    return [dice.choice(kinds) for _ in range(40)]


def make_releases(dice: random.Random, nodes: tuple[FreeNode, ...]) -> dict[str, list[Release]]:
    return {
        node.name: [Release(dice.uniform(0, 5000), node.gpus_total - len(node.gpus), node.slots_total)]
        for node in nodes
        if dice.random() < 0.7
    }


def walk(line: Line[int], demands: list[Demand], *, passes_over: bool) -> tuple[Outcome, int]:
    """Returns what the walk did, and how many runs it looked at."""
    outcome, looks = Outcome(), 0
    for run, demand in enumerate(demands):
        if passes_over and line.is_out_of_reach(demand):
            outcome.behind[run] = line.in_front(demand)
            line.append(demand, run)
            continue
        looks += 1
        answer = line.ask(demand)
        if not isinstance(answer, Refusal):
            line.grant(answer, demand)
            outcome.placements[run] = answer.nodes
        elif answer.permanent:
            outcome.refused_for_ever.add(run)
        else:
            outcome.behind[run] = line.in_front(demand)
            line.wait(demand, run)
    outcome.heads = dict(line.heads)
    return outcome, looks


@pytest.mark.parametrize("seed", range(400))
def test_passing_over_changes_nothing(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    nodes, demands = make_nodes(dice), make_demands(dice)
    releases = make_releases(dice, nodes)
    every, looks = walk(Line(nodes, releases), demands, passes_over=False)
    shortened, fewer = walk(Line(nodes, releases), demands, passes_over=True)
    assert shortened == every
    assert fewer <= looks


def test_of_many_alike_one_is_looked_at() -> None:
    node = FreeNode("alpha", "10.0.0.1", gpus=(), gpus_total=8, slots=8, slots_total=8, cores=8)
    _, looks = walk(Line((node,)), [Demand(1, 1, 0)] * 1000, passes_over=True)
    assert looks == 1
