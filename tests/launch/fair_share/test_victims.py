"""Which runs are preempted: only if the whole run then starts, and those that lose least."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.launch.builders import make_node
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.preemption import MAX_SETS, Candidate, Part, choose_victims


def candidate(run: str, lost: float, **parts: int) -> Candidate:
    return Candidate(run, lost, {name: Part(gpus, 0) for name, gpus in parts.items()})


def victims(demand: Demand, nodes: list[FreeNode], *candidates: Candidate) -> list[str]:
    return [item.run for item in choose_victims(demand, nodes, candidates)]


def gpus(count: int, nodes: int = 1) -> Demand:
    return Demand(nodes, count, 0)


FULL = [make_node("a", gpus=4, free=0), make_node("b", gpus=4, free=0)]


class TestVictims:
    def test_are_those_that_lose_least(self) -> None:
        assert victims(
            gpus(2), FULL, candidate("1", 90, a=4), candidate("2", 50, b=2), candidate("3", 60, b=2)
        ) == ["2"]

    def test_two_cheap_ones_go_before_a_dear_one(self) -> None:
        assert victims(
            gpus(4), FULL, candidate("1", 90, a=4), candidate("2", 30, b=2), candidate("3", 40, b=2)
        ) == [
            "2",
            "3",
        ]

    def test_are_none_if_the_whole_gang_would_not_start(self) -> None:
        assert victims(gpus(4, nodes=2), FULL, candidate("1", 1, a=4), candidate("2", 1, b=3)) == []

    def test_a_gang_is_preempted_whole(self) -> None:
        assert victims(gpus(4, nodes=2), FULL, candidate("1", 10, a=4, b=2), candidate("2", 5, b=2)) == [
            "2",
            "1",
        ]

    def test_are_none_if_it_fits_already(self) -> None:
        assert victims(gpus(2), [make_node("a", gpus=4, free=2)], candidate("1", 1, a=2)) == []

    def test_on_nodes_that_take_no_runs_are_left_alone(self) -> None:
        closed = [make_node("a", gpus=4, free=0, closed="is drained")]
        assert victims(gpus(4), closed, candidate("1", 1, a=4)) == []

    def test_many_small_ones_are_chosen_in_bounded_time(self) -> None:
        nodes = [make_node(f"n{n}", gpus=8, free=0) for n in range(8)]
        small = [candidate(f"{n}-{g}", 100.0, **{f"n{n}": 1}) for n in range(8) for g in range(8)]
        chosen = victims(gpus(8, nodes=2), nodes, *small)
        assert len(chosen) == 16
        assert MAX_SETS <= 5000


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(1, 2),
)
def test_no_cheaper_set_makes_room(items: list[tuple[int, int, int]], count: int, nodes: int) -> None:
    candidates = [candidate(str(n), lost, a=a, b=b) for n, (lost, a, b) in enumerate(items)]
    demand = gpus(count, nodes=nodes)

    def fits(chosen: tuple[Candidate, ...]) -> bool:
        return sum(min(4, sum(item.parts[name][0] for item in chosen)) >= count for name in "ab") >= nodes

    chosen = choose_victims(demand, FULL, candidates)
    sets = [
        some
        for size in range(1, len(candidates) + 1)
        for some in combinations(candidates, size)
        if fits(some)
    ]
    if not sets:
        assert chosen == ()
    else:
        assert sum(item.lost for item in chosen) == min(sum(item.lost for item in some) for some in sets)
