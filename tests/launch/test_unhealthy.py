"""GPUs that are left out because they are unhealthy: in placement, in its sentences, and when a cluster
grows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.launch.builders import make_node
from trainhub_launch.scheduler.autoscaler import Bounds, Decision, ScalableNode, decide
from trainhub_launch.scheduler.capacity import Demand, FreeNode, Hold
from trainhub_launch.scheduler.placement import Placement, Refusal, place, provisional
from trainhub_launch.scheduler.queue import Line

FAULT = "XID 48"


def broken(name: str = "a", gpus: int = 1, free: int = 0, **more: Any) -> FreeNode:
    """One of its GPUs is unhealthy."""
    return make_node(name, gpus=gpus, free=free, gpus_unhealthy=1, faults=(FAULT,), **more)


def gpus(count: int, nodes: int = 1) -> Demand:
    return Demand(nodes, count, 0)


def sentence(demand: Demand, *nodes: FreeNode) -> str:
    answer = place(demand, nodes)
    assert isinstance(answer, Refusal)
    assert not answer.permanent
    return answer.sentence


class TestSentence:
    def test_names_the_fault_of_the_only_gpu(self) -> None:
        assert sentence(gpus(1), broken("sim-h100-1")) == (
            "Waiting for 1 node with 1 GPU: sim-h100-1 has 1 GPU free but unhealthy: XID 48."
        )

    def test_tells_it_beside_the_free_ones(self) -> None:
        assert sentence(gpus(2), broken(gpus=2, free=1)) == (
            "Waiting for 1 node with 2 GPUs: a has 1 of 2 GPUs free and 1 GPU free but unhealthy: XID 48."
        )

    def test_tells_who_holds_the_others(self) -> None:
        node = broken(gpus=4, holds=(Hold("run 41", 3),))
        assert sentence(gpus(2), node) == (
            "Waiting for 1 node with 2 GPUs: a has 1 GPU free but unhealthy: XID 48; "
            "the others are held by run 41."
        )

    def test_names_each_fault_once(self) -> None:
        node = replace(broken(gpus=4, free=1), gpus_unhealthy=3, faults=(FAULT, FAULT, "XID 79"))
        assert "3 GPUs free but unhealthy: XID 48 and XID 79." in sentence(gpus(4), node)


class TestPreview:
    def test_shows_the_node_on_which_the_run_can_start(self) -> None:
        placement = provisional(gpus(2), (broken("a", gpus=2, free=1), make_node("b", gpus=2, free=0)))
        assert isinstance(placement, Placement)
        assert placement.head.name == "b"

    def test_shows_a_broken_one_rather_than_none(self) -> None:
        placement = provisional(gpus(1), (broken(),))
        assert isinstance(placement, Placement)
        assert placement.head.name == "a"


class TestQueue:
    def test_a_run_that_only_an_unhealthy_gpu_could_serve_holds_up_nobody(self) -> None:
        line: Line[str] = Line((broken(gpus=2, free=1),))
        assert isinstance(line.ask(gpus(2)), Refusal)
        line.wait(gpus(2), "first")
        assert isinstance(line.ask(gpus(1)), Placement)
        assert line.in_front(gpus(1)) is None


class TestGrowing:
    BOUNDS = Bounds(least=0, most=2, idle_s=60.0, gpus=1, slots=8)

    def test_one_node_is_added_beside_an_unhealthy_one_and_no_more(self) -> None:
        sick = ScalableNode(broken(), idle_s=0.0)
        assert decide(self.BOUNDS, [sick], 0, 0, [gpus(1)]) == Decision(add=1)
        assert decide(self.BOUNDS, [sick], 1, 0, [gpus(1)]) == Decision()

    def test_none_is_added_beyond_the_most(self) -> None:
        sick = [ScalableNode(broken(name), idle_s=0.0) for name in ("a", "b")]
        assert decide(self.BOUNDS, sick, 0, 0, [gpus(1)]) == Decision()

    def test_an_idle_one_is_released_only_after_its_time(self) -> None:
        young, old = ScalableNode(broken("a"), idle_s=30.0), ScalableNode(broken("b"), idle_s=90.0)
        assert decide(self.BOUNDS, [young, old], 0, 0, [gpus(1)]) == Decision(release=("b",))
