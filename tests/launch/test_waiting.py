"""The queue: in order, and nobody behind delays who waits in front."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.launch.builders import make_node
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.scheduler.queue import Line


def walk(nodes: tuple[FreeNode, ...], *queue: Demand) -> dict[int, list[str]]:
    """Place in the queue -> the nodes that it got."""
    line: Line[int] = Line(nodes)
    got = {}
    for turn, wanted in enumerate(queue):
        answer = line.ask(wanted)
        if isinstance(answer, Placement):
            line.grant(answer)
            got[turn] = [node.name for node in answer.nodes]
        else:
            line.wait(wanted, turn)
    return got


def gpus(count: int, nodes: int = 1) -> Demand:
    return Demand(nodes, count, 0)


def slots(count: int, nodes: int = 1) -> Demand:
    return Demand(nodes, 0, count)


class TestOrder:
    def test_all_that_fits_starts(self) -> None:
        assert walk((make_node("a", gpus=4),), gpus(2), gpus(1), gpus(1)) == {0: ["a"], 1: ["a"], 2: ["a"]}

    def test_a_small_run_does_not_take_what_a_large_one_in_front_waits_for(self) -> None:
        assert walk((make_node("a", gpus=4, free=2),), gpus(4), gpus(1)) == {}

    def test_it_may_take_a_node_that_is_too_small_for_the_one_in_front(self) -> None:
        assert walk((make_node("a", gpus=4, free=0), make_node("b", gpus=2)), gpus(4), gpus(1), gpus(2)) == {
            1: ["b"]
        }

    def test_it_may_take_what_the_one_in_front_does_not_need(self) -> None:
        nodes = (make_node("a", gpus=8), make_node("b", gpus=8, free=0))
        assert walk(nodes, gpus(6, nodes=2), gpus(2), gpus(1)) == {1: ["a"]}

    def test_runs_without_gpus_do_not_wait_for_those_with(self) -> None:
        assert walk((make_node("a", gpus=1, free=0, slots=2),), gpus(1), slots(1), slots(2)) == {1: ["a"]}

    def test_one_that_waits_for_a_lost_node_keeps_nothing_back(self) -> None:
        lost = make_node("b", gpus=4, silent_s=900.0, is_lost=True)
        assert walk((make_node("a", gpus=4), lost), gpus(4, nodes=2), gpus(4)) == {1: ["a"]}

    def test_one_that_waits_for_a_node_out_of_reach_does(self) -> None:
        silent = make_node("b", gpus=4, silent_s=15.0)
        assert walk((make_node("a", gpus=4), silent), gpus(4, nodes=2), gpus(4)) == {}


class TestInFront:
    def test_is_the_nearest_that_wants_the_same(self) -> None:
        line: Line[str] = Line((make_node("a", gpus=4, free=0, slots=0),))
        for name, wanted in (("first", gpus(4)), ("second", gpus(1)), ("slots", slots(2))):
            line.wait(wanted, name)
        assert line.in_front(gpus(2)) == "second"

    def test_is_nobody_where_no_node_could_serve_both(self) -> None:
        line: Line[str] = Line((make_node("a", gpus=4, free=0), make_node("b", gpus=2, free=0)))
        line.wait(gpus(4), "large")
        assert line.in_front(Demand(1, 0, 1)) is None


cluster = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=3)
demands = st.builds(Demand, st.integers(1, 2), st.integers(0, 4), st.integers(0, 2)).filter(
    lambda d: d.gpus or d.slots
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[tuple[FreeNode, ...], list[tuple[str, int, int]], Demand, list[Demand]]:
    """A cluster with what is free there, the order in which the rest is given back, who waits in front, and
    who comes later."""
    nodes, back = [], []
    for number, (gpu_count, slot_count) in enumerate(draw(cluster)):
        free_gpus, free_slots = draw(st.integers(0, gpu_count)), draw(st.integers(0, slot_count))
        name = f"n{number}"
        nodes.append(make_node(name, gpus=gpu_count, free=free_gpus, slots=slot_count, free_slots=free_slots))
        back += [(name, 1, 0)] * (gpu_count - free_gpus) + [(name, 0, 1)] * (slot_count - free_slots)
    front = Demand(
        draw(st.integers(1, len(nodes))), draw(st.integers(1, min(node.gpus_total for node in nodes))), 0
    )
    return tuple(nodes), draw(st.permutations(back)), front, draw(st.lists(demands, min_size=1, max_size=6))


def given_back(
    nodes: tuple[FreeNode, ...], step: int, name: str, gpu: int, slot: int
) -> tuple[FreeNode, ...]:
    new = (f"{name}/back-{step}",)[:gpu]
    return tuple(
        replace(node, gpus=(*node.gpus, *new), slots=node.slots + slot) if node.name == name else node
        for node in nodes
    )


def starts_after(
    nodes: tuple[FreeNode, ...], back: list[tuple[str, int, int]], front: Demand, later: list[Demand]
) -> int | None:
    """After how many returns the run in front starts, those behind it never giving anything back; None =
    never."""
    for step, returned in enumerate([("", 0, 0), *back]):
        nodes = given_back(nodes, step, *returned)
        line: Line[str] = Line(nodes)
        if isinstance(line.ask(front), Placement):
            return step
        line.wait(front, "front")
        for wanted in list(later):
            answer = line.ask(wanted)
            if isinstance(answer, Placement):
                line.grant(answer)
                later.remove(wanted)
                nodes = line.nodes
            else:
                line.wait(wanted, "later")
    return None


@settings(max_examples=300)
@given(worlds())
def test_the_run_in_front_is_never_delayed_by_those_behind_it(
    world: tuple[tuple[FreeNode, ...], list[tuple[str, int, int]], Demand, list[Demand]],
) -> None:
    nodes, back, front, later = world
    assert starts_after(nodes, back, front, list(later)) == starts_after(nodes, back, front, [])


@given(cluster, st.lists(demands, max_size=12))
def test_nothing_is_given_twice_and_gangs_are_given_whole(
    sizes: list[tuple[int, int]], queue: list[Demand]
) -> None:
    line: Line[int] = Line(
        tuple(make_node(f"n{n}", gpus=gpus, slots=slots) for n, (gpus, slots) in enumerate(sizes))
    )
    given_gpus: list[str] = []
    given_slots: dict[str, int] = {}
    for turn, wanted in enumerate(queue):
        answer = line.ask(wanted)
        if not isinstance(answer, Placement):
            line.wait(wanted, turn)
            continue
        line.grant(answer)
        assert len({node.name for node in answer.nodes}) == wanted.nodes
        for node in answer.nodes:
            assert (len(node.gpus), node.slots) == (wanted.gpus, wanted.slots)
            given_gpus += node.gpus
            given_slots[node.name] = given_slots.get(node.name, 0) + node.slots
    assert len(set(given_gpus)) == len(given_gpus)
    assert all(count <= sizes[int(name[1:])][1] for name, count in given_slots.items())
