"""How a cluster grows for those who wait and shrinks when no run needs it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.launch.builders import make_node
from trainhub_launch.scheduler.autoscaler import Bounds, Decision, ScalableNode, decide
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.scheduler.queue import Line

IDLE_S = 60.0


def bounds(most: int = 3, least: int = 0, gpus: int = 2, slots: int = 8) -> Bounds:
    return Bounds(least=least, most=most, idle_s=IDLE_S, gpus=gpus, slots=slots)


def gpus(count: int, nodes: int = 1) -> Demand:
    return Demand(nodes, count, 0)


def idle(name: str, seconds: float = 0.0, **more: object) -> ScalableNode:
    return ScalableNode(make_node(name, gpus=2), idle_s=seconds, **more)  # type: ignore[arg-type]


def busy(name: str) -> ScalableNode:
    return ScalableNode(make_node(name, gpus=2, free=0))


class TestGrowing:
    def test_nobody_waits_and_nothing_is_added(self) -> None:
        assert decide(bounds(), [], 0, 0, []) == Decision()

    def test_a_run_of_three_nodes_gets_three(self) -> None:
        assert decide(bounds(), [], 0, 0, [gpus(2, nodes=3)]).add == 3

    def test_what_is_there_and_what_is_coming_counts(self) -> None:
        assert decide(bounds(), [idle("a")], 1, 0, [gpus(2, nodes=3)]).add == 1

    def test_runs_share_a_node_that_comes(self) -> None:
        assert decide(bounds(), [], 0, 0, [gpus(1), gpus(1), gpus(2)]).add == 2

    def test_a_busy_node_does_not_help_the_one_that_waits(self) -> None:
        assert decide(bounds(), [busy("a")], 0, 0, [gpus(1)]).add == 1

    def test_a_run_that_must_wait_for_others_gets_nothing_that_would_stand_idle(self) -> None:
        assert decide(bounds(), [busy("a")], 0, 0, [gpus(2, nodes=3)]).add == 0

    def test_nor_does_anybody_behind_it(self) -> None:
        assert decide(bounds(), [busy("a")], 0, 0, [gpus(2, nodes=3), gpus(1)]).add == 0

    def test_a_run_that_never_fits_keeps_nobody_waiting(self) -> None:
        assert decide(bounds(), [], 0, 0, [gpus(2, nodes=4), gpus(8), gpus(1)]).add == 1

    def test_a_run_for_a_node_made_by_hand_adds_none_that_is_too_small_for_it(self) -> None:
        large = ScalableNode(make_node("large", gpus=8, free=0), is_provided=False)
        assert decide(bounds(), [large], 0, 0, [gpus(8), gpus(1)]).add == 1

    def test_the_least_number_is_kept_without_any_run(self) -> None:
        assert decide(bounds(least=2), [idle("a")], 0, 0, []).add == 1

    def test_machines_that_still_leave_count_against_the_most(self) -> None:
        assert decide(bounds(most=1), [], 0, 1, [gpus(1)]).add == 0

    def test_a_drained_or_silent_node_carries_nothing(self) -> None:
        drained = ScalableNode(make_node("a", gpus=2, closed="is drained"), is_protected=True)
        silent = ScalableNode(make_node("b", gpus=2, silent_s=20.0))
        assert decide(bounds(), [drained, silent], 0, 0, [gpus(2)]).add == 1


class TestShrinking:
    def test_a_node_goes_after_its_idle_time(self) -> None:
        assert decide(bounds(), [idle("a", 61), idle("b", 59)], 0, 0, []).release == ("a",)

    def test_never_below_the_least(self) -> None:
        assert decide(bounds(least=1), [idle("a", 61), idle("b", 90)], 0, 0, []).release == ("b",)

    def test_a_busy_one_stays(self) -> None:
        assert decide(bounds(), [busy("a")], 0, 0, []).release == ()

    def test_one_that_a_waiting_run_could_use_stays(self) -> None:
        assert decide(bounds(), [idle("a", 600), busy("b")], 0, 0, [gpus(2, nodes=3)]).release == ()

    def test_one_that_is_too_small_for_whoever_waits_goes(self) -> None:
        assert decide(bounds(gpus=4), [idle("a", 600)], 0, 0, [gpus(4)]) == Decision(1, ("a",))

    def test_what_was_drained_by_hand_or_joined_by_hand_stays(self) -> None:
        assert (
            decide(
                bounds(), [idle("a", 600, is_protected=True), idle("b", 600, is_provided=False)], 0, 0, []
            ).release
            == ()
        )

    def test_above_the_most_idle_ones_go_at_once(self) -> None:
        assert decide(bounds(most=1), [idle("a", 1), idle("b", 2), idle("c", 3)], 0, 0, []).release == (
            "c",
            "b",
        )


demands = st.lists(
    st.builds(Demand, nodes=st.integers(1, 5), gpus=st.integers(0, 5), slots=st.integers(0, 9)), max_size=5
)
limits = st.builds(
    lambda most, least, gpus, slots: bounds(most, min(least, most), gpus, slots),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 8),
)
standing = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.floats(0, 200), st.booleans(), st.booleans()),
    max_size=5,
).map(
    lambda rows: [
        ScalableNode(
            make_node(f"n{number}", gpus=total, free=min(total, free), slots=8),
            is_provided=provided,
            is_protected=kept,
            idle_s=seconds if free >= total else None,
        )
        for number, (total, free, seconds, provided, kept) in enumerate(rows)
    ]
)


class TestAlways:
    @given(limits, standing, st.integers(0, 3), st.integers(0, 2), demands)
    def test_never_above_the_most_nor_below_the_least(
        self, limit: Bounds, nodes: list[ScalableNode], coming: int, leaving: int, queue: list[Demand]
    ) -> None:
        told = decide(limit, nodes, coming, leaving, queue)
        provided = [item for item in nodes if item.is_provided]
        assert told.add >= 0
        assert not told.add or len(provided) + coming + leaving + told.add <= limit.most
        assert not told.release or len(provided) - len(told.release) >= limit.least
        gone = [item for item in nodes if item.node.name in told.release]
        assert all(item.is_provided and not item.is_protected and item.idle_s is not None for item in gone)

    @given(limits, standing, demands)
    def test_what_was_added_is_enough_and_is_kept(
        self, limit: Bounds, nodes: list[ScalableNode], queue: list[Demand]
    ) -> None:
        """No oscillation: while the same runs wait, nothing more comes, and nothing that came goes."""
        told = decide(limit, nodes, 0, 0, queue)
        assert decide(limit, nodes, told.add, 0, queue).add == 0
        made = [
            ScalableNode(make_node(f"new{number}", gpus=limit.gpus, slots=limit.slots), idle_s=999)
            for number in range(told.add)
        ]
        after = decide(limit, nodes + made, 0, 0, queue)
        assert after.add == 0
        if all(item.node.name not in told.release for item in nodes) and told.add > limit.least:
            assert not {item.node.name for item in made} & set(after.release)

    @given(limits, standing)
    def test_what_goes_does_not_come_back_unasked(self, limit: Bounds, nodes: list[ScalableNode]) -> None:
        told = decide(limit, nodes, 0, 0, [])
        left = [item for item in nodes if item.node.name not in told.release]
        assert not told.release or decide(limit, left, 0, 0, []) == Decision(0, ())

    @settings(deadline=None)
    @given(limits, demands)
    def test_every_run_that_fits_into_the_most_gets_its_nodes(
        self, limit: Bounds, queue: list[Demand]
    ) -> None:
        waiting = [wanted for wanted in queue if limit.can_make(wanted) and wanted.nodes <= limit.most]
        nodes: list[ScalableNode] = []
        for step in range(3 * len(waiting) + 1):
            told = decide(limit, nodes, 0, 0, waiting)
            nodes = [item for item in nodes if item.node.name not in told.release]
            fresh = (make_node(f"{step}-{i}", gpus=limit.gpus, slots=limit.slots) for i in range(told.add))
            nodes += [ScalableNode(node, idle_s=0.0) for node in fresh]
            assert len(nodes) <= limit.most
            waiting, nodes = _run(waiting, nodes)
        assert waiting == []


def _run(waiting: list[Demand], nodes: list[ScalableNode]) -> tuple[list[Demand], list[ScalableNode]]:
    """Whoever gets a place runs and ends; afterwards its nodes have been idle for long."""
    line: Line[int] = Line(tuple(item.node for item in nodes))
    left = []
    for number, wanted in enumerate(waiting):
        answer = line.ask(wanted) if nodes else None
        if isinstance(answer, Placement):
            line.grant(answer)
        else:
            left.append(wanted)
            line.wait(wanted, number)
    return left, [replace(item, idle_s=IDLE_S + 1) for item in nodes]
