from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.launch.builders import make_node, make_spec, mpi, pytorch, tensorflow
from trainhub_launch.frameworks import demand
from trainhub_launch.machine import Interpreter
from trainhub_launch.scheduler.capacity import Hold
from trainhub_launch.scheduler.placement import Demand, FreeNode, Placement, Refusal, place, provisional
from trainhub_launch.scheduler.rejections import size_range
from trainhub_launch.spec import Resources


def placed(wanted: Demand, *nodes: FreeNode) -> list[str]:
    answer = place(wanted, nodes)
    assert isinstance(answer, Placement)
    return [node.name for node in answer.nodes]


def refused(wanted: Demand, *nodes: FreeNode) -> Refusal:
    answer = place(wanted, nodes)
    assert isinstance(answer, Refusal)
    return answer


class TestDemand:
    @pytest.mark.parametrize(
        ("distribution", "resources", "expected"),
        [
            (None, Resources(), (1, 0, 1)),
            (None, Resources(gpus_per_node=2), (1, 2, 0)),
            (pytorch(4, 2), Resources(), (2, 0, 2)),
            (pytorch(None, 2), Resources(), (2, 0, 1)),
            (pytorch(5, 2), Resources(), (2, 0, 3)),
            (mpi(4, 2), Resources(gpus_per_node=4), (2, 4, 0)),
            (tensorflow(2), Resources(), (2, 0, 1)),
            (tensorflow(5, 3), Resources(node_count=2), (2, 0, 6)),
            (tensorflow(2, 1), Resources(gpus_per_node=1), (2, 1, 2)),
        ],
    )
    def test_is_what_each_node_must_give(
        self, distribution: Any, resources: Resources, expected: tuple[int, int, int]
    ) -> None:
        wanted = demand(make_spec(distribution, resources=resources))
        assert (wanted.nodes, wanted.gpus, wanted.slots) == expected


class TestPlace:
    def test_takes_the_fullest_node_that_fits(self) -> None:
        assert placed(Demand(1, 2, 0), make_node("big", gpus=8), make_node("half", gpus=4, free=2)) == [
            "half"
        ]

    def test_leaves_gpu_nodes_to_those_who_need_gpus(self) -> None:
        assert placed(Demand(1, 0, 1), make_node("a", gpus=4), make_node("cpu")) == ["cpu"]

    def test_gives_exactly_what_was_asked(self) -> None:
        answer = place(Demand(1, 2, 0), (make_node("a", gpus=4),))
        assert isinstance(answer, Placement)
        assert (answer.head.gpus, answer.head.slots) == (("a/0", "a/1"), 0)

    def test_ranks_nodes_by_name_as_people_count(self) -> None:
        nodes = [make_node(f"gpu-{n}", gpus=1, slots=30 - n) for n in (10, 2, 1)]
        assert placed(Demand(3, 1, 0), *nodes) == ["gpu-1", "gpu-2", "gpu-10"]

    def test_several_nodes_are_all_with_infiniband_where_there_are_enough(self) -> None:
        fabric = [make_node(f"ib-{n}", gpus=8, infiniband=True) for n in (1, 2)]
        plain = [make_node(f"eth-{n}", gpus=4) for n in (1, 2)]
        assert placed(Demand(2, 4, 0), *plain, *fabric) == ["ib-1", "ib-2"]
        assert placed(Demand(3, 4, 0), *plain, *fabric) == ["eth-1", "eth-2", "ib-1"]

    def test_one_node_leaves_infiniband_to_others(self) -> None:
        assert placed(Demand(1, 4, 0), make_node("ib", gpus=4, infiniband=True), make_node("z", gpus=4)) == [
            "z"
        ]


class TestRefusal:
    def test_without_nodes_the_run_waits_for_one(self) -> None:
        assert refused(Demand(1, 0, 1)) == Refusal(
            "The cluster has no node that is ready.", "resources.cluster", permanent=False
        )

    def test_says_which_node_comes_nearest_and_what_would_fit(self) -> None:
        answer = refused(Demand(1, 8, 0), make_node("small", gpus=1), make_node("larger", gpus=4))
        assert answer == Refusal(
            "The run needs 1 node with 8 GPUs, and no node has that many; larger comes nearest with 4 GPUs: "
            "ask for at most 4 GPUs per node.",
            "resources.gpus_per_node",
            permanent=True,
        )

    def test_offers_more_nodes_where_those_have_as_much(self) -> None:
        answer = refused(Demand(1, 8, 0), *(make_node(f"gpu-{n}", gpus=4) for n in range(2)))
        assert answer.sentence.endswith("ask for at most 4 GPUs per node, or for 2 nodes with 4 each.")
        alone = refused(Demand(1, 8, 0, "distribution"), *(make_node(f"gpu-{n}", gpus=4) for n in range(2)))
        assert alone.sentence.endswith("ask for at most 4 GPUs per node.")

    def test_speaks_of_processes_where_no_gpu_is_asked_for(self) -> None:
        answer = refused(Demand(1, 0, 99), make_node("a", slots=8), make_node("b", slots=16))
        assert answer.sentence == (
            "The run needs 1 node with 99 process slots, and no node has that many; b comes nearest with 16 "
            "process slots: "
            "ask for at most 16 process slots per node."
        )
        assert answer.field == "distribution"

    def test_says_that_no_gpu_is_there_at_all(self) -> None:
        assert refused(Demand(1, 1, 0), make_node("a")).sentence.endswith("a comes nearest with no GPU.")

    def test_of_ten_nodes_on_two_names_the_nearest_fit(self) -> None:
        answer = refused(Demand(10, 4, 0), make_node("a", gpus=4), make_node("b", gpus=8))
        assert answer == Refusal(
            "The run needs 10 nodes with 4 GPUs each, and the cluster has 2 nodes; ask for at most 2 nodes.",
            "distribution.node_count",
            permanent=True,
        )
        assert refused(Demand(10, 9, 0), make_node("a", gpus=4), make_node("b", gpus=8)).sentence == (
            "The run needs 10 nodes with 9 GPUs each, and the cluster has 2 nodes, none of which has "
            "that many."
        )

    def test_of_too_few_large_nodes_is_about_their_number(self) -> None:
        answer = refused(
            Demand(3, 4, 0), make_node("a", gpus=4), make_node("b", gpus=8), make_node("c", gpus=2)
        )
        assert answer.sentence == (
            "The run needs 3 nodes with 4 GPUs each, and only 2 nodes have that many: a, b; "
            "ask for at most 2 nodes, or for at most 2 GPUs on each."
        )
        assert (answer.field, answer.permanent) == ("distribution.node_count", True)
        assert refused(Demand(2, 0, 1, "resources.node_count"), make_node()).field == "resources.node_count"

    def test_a_silent_node_counts_as_there_and_gets_nothing(self) -> None:
        away = make_node("b", gpus=4, silent_s=44.0)
        answer = refused(Demand(2, 4, 0), make_node("a", gpus=4), away)
        assert answer == Refusal(
            "Waiting for 2 nodes with 4 GPUs each: a is free. b has not reported for 40 s.",
            "resources.gpus_per_node",
            False,
        )
        assert refused(Demand(3, 4, 0), make_node("a", gpus=4), away).permanent


class TestWaiting:
    def test_shows_what_is_free_nearest_first_and_who_holds_the_rest(self) -> None:
        held = make_node("a", gpus=4, free=0, holds=(Hold("run 41", 2), Hold("another workspace", 2)))
        half = make_node("b", gpus=4, free=2, holds=(Hold("run 41", 2),))
        answer = refused(Demand(2, 4, 0), held, half, make_node("c", gpus=4))
        assert answer.sentence == (
            "Waiting for 2 nodes with 4 GPUs each: c is free. b has 2 of 4 GPUs free; the others are held "
            "by run 41. "
            "a has 0 of 4 GPUs free; they are held by run 41 and another workspace."
        )
        assert not answer.permanent

    def test_speaks_of_slots_where_those_are_short(self) -> None:
        answer = refused(Demand(1, 1, 3), make_node("a", gpus=1, slots=4, free_slots=2))
        assert (
            answer.sentence
            == "Waiting for 1 node with 1 GPU and 3 process slots: a has 2 of 4 process slots free."
        )

    def test_names_gpus_that_wait_for_a_proof(self) -> None:
        node = make_node("b", gpus=4, free=2, holds=(Hold("run 12", 2, is_over=True),))
        assert refused(Demand(1, 4, 0), node).sentence == (
            "Waiting for 1 node with 4 GPUs: b has 2 of 4 GPUs free; "
            "2 GPUs of b stay reserved until it confirms that run 12 has ended."
        )

    def test_names_only_the_nearest_of_many(self) -> None:
        nodes = (make_node(f"n{n}", gpus=8, free=0, holds=(Hold("run 1", 8),)) for n in range(9))
        assert refused(Demand(1, 8, 0), *nodes).sentence.endswith(
            "held by run 1. 5 more nodes have even less free."
        )

    @pytest.mark.parametrize(
        ("seconds", "told"),
        [(3, "10 s"), (44, "40 s"), (119, "110 s"), (185, "3 min"), (7300, "2 h"), (90000, "25 h")],
    )
    def test_spans_are_coarse(self, seconds: float, told: str) -> None:
        assert size_range(seconds) == told


class TestPython:
    def test_nodes_without_it_are_skipped_and_named_last(self) -> None:
        old, new = (
            make_node(name, interpreters=(Interpreter(f"/opt/{version}/bin/python", version),))
            for name, version in (("a", "3.11.7"), ("b", "3.12.1"))
        )
        needs = Demand(1, 0, 1, python="3.12")
        placement = place(needs, (old, new))
        assert isinstance(placement, Placement)
        assert placement.head.name == "b"
        refusal = place(needs, (old, replace(new, slots=0)))
        assert isinstance(refusal, Refusal)
        assert not refusal.permanent
        assert refusal.sentence == (
            "Waiting for 1 node with 1 process slot: b has 0 of 8 process slots free. "
            "a has no Python 3.12, but 3.11.7."
        )


class TestPreference:
    def test_of_an_mpi_run_is_for_nodes_with_mpi(self) -> None:
        nodes = (make_node("a", mpi=False), make_node("b"), make_node("c"))
        assert placed(Demand(2, 0, 1, mpi=True), *nodes) == ["b", "c"]
        assert placed(Demand(2, 0, 1), *nodes) == ["a", "b"]
        assert placed(Demand(3, 0, 1, mpi=True), *nodes) == ["a", "b", "c"]

    def test_of_several_nodes_is_for_those_that_others_can_reach(self) -> None:
        nodes = (make_node("a", address="127.0.0.1"), make_node("b"), make_node("c"))
        assert placed(Demand(2, 0, 1), *nodes) == ["b", "c"]
        assert placed(Demand(1, 0, 1), *nodes) == ["a"]


class TestProvisional:
    def test_is_as_if_all_were_free_and_does_not_promise_a_gpu(self) -> None:
        answer = provisional(Demand(1, 2, 0), (make_node("a", gpus=4, free=0),))
        assert isinstance(answer, Placement)
        assert answer.head.gpus == ("<GPU 0 of a>", "<GPU 1 of a>")

    def test_prefers_the_nodes_that_report_and_takes_silent_ones_too(self) -> None:
        nodes = (make_node("a", silent_s=30.0), make_node("b"))
        for count, expected in ((1, ["b"]), (2, ["a", "b"])):
            answer = provisional(Demand(count, 0, 1), nodes)
            assert isinstance(answer, Placement)
            assert [node.name for node in answer.nodes] == expected

    def test_takes_what_is_there_before_what_can_still_come(self) -> None:
        coming = [
            make_node(f"<new node {number}>", gpus=8, free=0, free_slots=0, is_coming=True)
            for number in (1, 2, 3)
        ]
        answer = provisional(Demand(2, 8, 0), (make_node("a", gpus=8), *coming))
        assert isinstance(answer, Placement)
        assert {node.name for node in answer.nodes} == {"<new node 1>", "a"}

    def test_takes_a_drained_node_only_where_it_must(self) -> None:
        drained, free = make_node("a", gpus=1, closed="is drained"), make_node("b", gpus=1)
        answer = provisional(Demand(1, 1, 0), (drained, free))
        assert isinstance(answer, Placement)
        assert [node.name for node in answer.nodes] == ["b"]
