"""Memory and CPU cores that a run asks for: read, ordered, and counted by placement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.launch.builders import make_node
from trainhub_launch.errors import SpecError
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import Placement, place
from trainhub_launch.scheduler.rejections import Refusal
from trainhub_launch.scheduler.sizes import bytes_text, parse_bytes
from trainhub_launch.spec_reader import read_spec

GIB = 2**30
SPEC = {"source": {"type": "example", "name": "hello"}, "script": "main.py"}


def spec_with(**resources: object) -> dict[str, object]:
    return {**SPEC, "resources": resources}


def node(**changes: object) -> FreeNode:
    whole = {"memory": 64 * GIB, "memory_total": 64 * GIB, "cpus": 16.0, "cores": 16, "has_limits": True}
    return replace(make_node("alpha"), **{**whole, **changes})  # type: ignore[arg-type]


def demand(**changes: object) -> Demand:
    return replace(Demand(nodes=1, gpus=0, slots=1), **changes)  # type: ignore[arg-type]


def refusal(demand: Demand, *nodes: FreeNode) -> Refusal:
    result = place(demand, nodes)
    assert isinstance(result, Refusal)
    return result


class TestReading:
    @pytest.mark.parametrize(
        ("text", "size"),
        [("64GiB", 64 * GIB), ("1.5 TB", 1_500_000_000_000), ("512 mib", 512 * 2**20), (2**30, 2**30)],
    )
    def test_sizes(self, text: object, size: int) -> None:
        spec = read_spec(spec_with(memory=text, cpus=2))
        assert (spec.resources.memory, spec.resources.cpus) == (size, 2.0)
        assert read_spec(spec.to_json()) == spec

    @pytest.mark.parametrize("value", ["much", "64 GiB\0", "-1", 5, True, [], "1e9", "9" * 400, 2**70])
    def test_what_is_no_size_names_the_field(self, value: object) -> None:
        with pytest.raises(SpecError) as caught:
            read_spec(spec_with(memory=value))
        assert caught.value.field == "resources.memory"

    def test_disk_is_read_like_memory(self) -> None:
        spec = read_spec(spec_with(disk="100GiB"))
        assert spec.resources.disk == 100 * GIB
        assert read_spec(spec.to_json()) == spec
        with pytest.raises(SpecError, match="from 64 MiB to 1024 TiB") as caught:
            read_spec(spec_with(disk="1 KiB"))
        assert caught.value.field == "resources.disk"

    @pytest.mark.parametrize("value", ["2", 0, -1, True, float("nan"), float("inf"), 10**6])
    def test_what_is_no_number_of_cores_names_the_field(self, value: object) -> None:
        with pytest.raises(SpecError) as caught:
            read_spec(spec_with(cpus=value))
        assert caught.value.field == "resources.cpus"

    def test_a_spec_without_limits_looks_as_before(self) -> None:
        resources = read_spec(SPEC).to_json()["resources"]
        assert resources == {"cluster": "", "node_count": None, "gpus_per_node": 0}

    @pytest.mark.parametrize("size", [1, 1023, 2**20, 3 * 2**29, 64 * GIB])
    def test_texts_of_round_sizes_are_read_back(self, size: int) -> None:
        assert parse_bytes(bytes_text(size)) == size


class TestPlacement:
    def test_a_node_with_room_gets_the_run(self) -> None:
        assert isinstance(place(demand(memory_bytes=64 * GIB, cpus=16.0), (node(),)), Placement)

    def test_what_other_runs_have_reserved_is_not_given_again(self) -> None:
        waiting = refusal(demand(memory_bytes=33 * GIB), node(memory=32 * GIB))
        assert not waiting.permanent
        assert "alpha has 32 GiB of 64 GiB of memory free" in waiting.sentence
        waiting = refusal(demand(cpus=4.0), node(cpus=1.5))
        assert "alpha has 1.5 of 16 CPU cores free" in waiting.sentence

    def test_more_than_any_node_has_is_refused_with_what_there_is(self) -> None:
        never = refusal(demand(memory_bytes=100 * GIB), node())
        assert (never.permanent, never.field) == (True, "resources.memory")
        assert "100 GiB of memory, and no node has that much; ask for at most 64 GiB" in never.sentence
        never = refusal(demand(cpus=17.0), node())
        assert (never.permanent, never.field) == (True, "resources.cpus")

    def test_a_node_that_cannot_limit_is_not_chosen_and_the_reason_names_the_upgrade(self) -> None:
        waiting = refusal(demand(memory_bytes=GIB), node(has_limits=False))
        assert not waiting.permanent
        assert "alpha cannot limit memory and CPU cores: upgrade its agent" in waiting.sentence

    def test_a_node_with_less_disk_free_is_not_chosen_and_the_reason_names_it(self) -> None:
        needs = demand(disk_bytes=100 * GIB)
        assert isinstance(place(needs, (node(limits_disk=True, disk_free=100 * GIB),)), Placement)
        assert isinstance(place(needs, (node(limits_disk=True, disk_free=None),)), Placement)
        waiting = refusal(needs, node(limits_disk=True, disk_free=40 * GIB))
        assert not waiting.permanent
        assert "100 GiB of disk: alpha has 40 GiB of disk free" in waiting.sentence

    def test_an_agent_that_does_not_watch_the_disk_is_not_chosen(self) -> None:
        waiting = refusal(demand(disk_bytes=GIB), node(disk_free=40 * GIB))
        assert not waiting.permanent
        assert "alpha cannot limit disk: upgrade its agent" in waiting.sentence

    def test_a_run_without_limits_goes_everywhere(self) -> None:
        assert isinstance(place(demand(), (node(has_limits=False, memory=0, cpus=0.0),)), Placement)
