"""Placement by the data that runs download and nodes have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.launch.builders import make_node
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.data_room import DataLists, DataRoom
from trainhub_launch.scheduler.placement import Placement, Refusal, place, provisional
from trainhub_launch.scheduler.queue import Line

GIB = 1024**3
BIRDS, FISH = ("birds", 40 * GIB), ("fish", 30 * GIB)


def lists(*items: tuple[str, int]) -> DataLists:
    return frozenset(items)


def needs(*items: tuple[str, int], nodes: int = 1, gpus: int = 1) -> Demand:
    return Demand(nodes, gpus, 0, data=lists(*items))


def node(name: str, room: DataRoom, gpus: int = 4) -> FreeNode:
    return replace(make_node(name, gpus=gpus), data=room)


def names(answer: Placement | Refusal) -> list[str]:
    assert isinstance(answer, Placement), answer
    return [placed.name for placed in answer.nodes]


def refusal(answer: Placement | Refusal) -> Refusal:
    assert isinstance(answer, Refusal)
    return answer


class TestNodesThatHaveTheData:
    def test_are_preferred_to_fuller_ones(self) -> None:
        has = node("large", DataRoom(100 * GIB, frozenset({"birds"})), gpus=8)
        assert names(place(needs(BIRDS), (node("small", DataRoom(100 * GIB)), has))) == ["large"]

    def test_are_preferred_with_a_part_of_it(self) -> None:
        part = node("z", DataRoom(100 * GIB, frozenset({"fish"})))
        assert names(place(needs(BIRDS, FISH), (node("a", DataRoom(100 * GIB)), part))) == ["z"]

    def test_are_not_preferred_to_fuller_ones_for_little_data(self) -> None:
        has = node("large", DataRoom(100 * GIB, frozenset({"tiny"})), gpus=8)
        others = (node("small", DataRoom(100 * GIB)), has)
        assert names(place(needs(("tiny", 5_000_000)), others)) == ["small"]

    def test_are_preferred_to_equal_ones_for_little_data(self) -> None:
        has = node("z", DataRoom(100 * GIB, frozenset({"tiny"})))
        assert names(place(needs(("tiny", 5_000_000)), (node("a", DataRoom(100 * GIB)), has))) == ["z"]

    def test_matter_to_nobody_without_data(self) -> None:
        has = node("z", DataRoom(100 * GIB, frozenset({"birds"})))
        assert names(place(needs(), (node("a", DataRoom(100 * GIB)), has))) == ["a"]


class TestDataThatFitsNowhere:
    def test_is_refused_with_the_numbers(self) -> None:
        answer = refusal(place(needs(BIRDS), (node("a", DataRoom(10 * GIB)), node("b", DataRoom(20 * GIB)))))
        assert (answer.permanent, answer.field) == (True, "inputs")
        assert answer.sentence == (
            "The data of the run has 40 GiB, and no node has so much room for data: b has 20 GiB; use fewer "
            "files, or ask its operator to raise TRAINHUB_NODE_DATA_CACHE_BYTES there, or to move "
            "TRAINHUB_NODE_CACHE to a larger disk."
        )

    def test_counts_all_inputs(self) -> None:
        assert refusal(place(needs(BIRDS, FISH), (node("a", DataRoom(60 * GIB)),))).permanent

    def test_counts_the_nodes_of_a_gang(self) -> None:
        nodes = (node("a", DataRoom(100 * GIB)), node("b", DataRoom(20 * GIB)))
        answer = refusal(place(needs(BIRDS, nodes=2), nodes))
        assert (
            "40 GiB on each node, and fewer than 2 nodes have so much room for data: b has" in answer.sentence
        )

    def test_names_no_node_whose_room_is_unknown(self) -> None:
        nodes = (node("a", DataRoom(10 * GIB)), node("b", DataRoom()), node("c", DataRoom(20 * GIB)))
        assert "room for data: c has 20 GiB; use" in refusal(place(needs(BIRDS, nodes=2), nodes)).sentence
        assert "room for data: a has 10 GiB; use" in refusal(place(needs(BIRDS, nodes=3), nodes)).sentence

    def test_is_also_refused_in_a_preview(self) -> None:
        assert refusal(provisional(needs(BIRDS), (node("a", DataRoom(10 * GIB)),))).field == "inputs"

    def test_is_not_why_gpus_are_missing(self) -> None:
        answer = refusal(place(needs(BIRDS, gpus=8), (node("a", DataRoom(10 * GIB)),)))
        assert answer.field == "resources.gpus_per_node"

    def test_is_unknown_of_older_agents(self) -> None:
        assert names(place(needs(BIRDS), (node("a", DataRoom()),))) == ["a"]


class TestDataThatOtherRunsUse:
    def test_makes_a_run_wait(self) -> None:
        answer = refusal(place(needs(BIRDS), (node("a", DataRoom(60 * GIB, in_use=lists(FISH))),)))
        assert not answer.permanent
        assert answer.sentence == (
            "Waiting for 1 node with 1 GPU and room for 40 GiB of data: a has room for 60 GiB of data, of "
            "which other runs use 30 GiB."
        )

    def test_is_shared_by_runs_that_need_the_same(self) -> None:
        assert names(place(needs(BIRDS), (node("a", DataRoom(60 * GIB, in_use=lists(BIRDS))),))) == ["a"]

    def test_keeps_nobody_away_who_needs_none(self) -> None:
        full = DataRoom(10 * GIB, in_use=lists(FISH))
        assert names(place(needs(), (node("a", full),))) == ["a"]

    @pytest.mark.parametrize(("second", "fits"), [(FISH, False), (BIRDS, True)])
    def test_counts_runs_that_were_placed_before(self, second: tuple[str, int], *, fits: bool) -> None:
        line: Line[str] = Line((node("a", DataRoom(60 * GIB)),))
        first = line.ask(needs(BIRDS))
        assert isinstance(first, Placement)
        line.grant(first, needs(BIRDS))
        assert isinstance(line.ask(needs(second)), Placement) is fits
