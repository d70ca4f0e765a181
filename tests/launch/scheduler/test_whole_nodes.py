"""Runs that take all GPUs of each of their nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.launch.builders import make_node, make_placement, make_plan, make_spec, mpi, pytorch, tensorflow
from tests.launch.findings.findings_of import found, one
from trainhub_launch.frameworks import demand
from trainhub_launch.planner.draft import draft_plan
from trainhub_launch.scheduler.autoscaler import Bounds, Decision, ScalableNode, decide
from trainhub_launch.scheduler.capacity import Demand, FreeNode, Hold
from trainhub_launch.scheduler.placement import Placement, Refusal, place
from trainhub_launch.scheduler.queue import Line
from trainhub_launch.scheduler.whole_nodes import with_all_gpus
from trainhub_launch.spec import Resources, RunSpec

ALL = Resources("local", all_gpus=True)


def whole(distribution: Any = None, **resources: Any) -> RunSpec:
    return make_spec(distribution, resources=replace(ALL, **resources))


def needs(spec: RunSpec, *nodes: FreeNode) -> Demand:
    return with_all_gpus(demand(spec), nodes)


def placed(spec: RunSpec, *nodes: FreeNode) -> dict[str, int]:
    """The GPUs on each node that the run gets."""
    answer = place(needs(spec, *nodes), nodes)
    assert isinstance(answer, Placement), answer
    return {node.name: len(node.gpus) for node in answer.nodes}


def refused(spec: RunSpec, *nodes: FreeNode) -> Refusal:
    answer = place(needs(spec, *nodes), nodes)
    assert isinstance(answer, Refusal)
    return answer


class TestPlacement:
    def test_takes_every_gpu_of_each_node(self) -> None:
        assert placed(whole(), make_node("a", gpus=4)) == {"a": 4}
        assert placed(whole(mpi(4, 2)), *(make_node(name, gpus=4) for name in "abc")) == {"a": 4, "b": 4}

    def test_of_nodes_that_differ_all_have_the_largest_number_of_which_there_are_enough(self) -> None:
        nodes = (make_node("big", gpus=8), make_node("a", gpus=4), make_node("b", gpus=4))
        assert placed(whole(), *nodes) == {"big": 8}
        assert placed(whole(pytorch(None, 2)), *nodes) == {"a": 4, "b": 4}

    def test_a_node_with_a_gpu_in_use_or_out_of_order_is_not_whole(self) -> None:
        used = make_node("a", gpus=4, free=3, holds=(Hold("run 1", 1),))
        assert refused(whole(), used) == Refusal(
            "Waiting for 1 node with all 4 GPUs: a has 3 of 4 GPUs free; the other is held by run 1.",
            "resources.gpus_per_node",
            permanent=False,
        )
        broken = make_node("b", gpus=4, free=3, gpus_unhealthy=1, faults=("XID 48",))
        assert "1 GPU free but unhealthy: XID 48" in refused(whole(), broken).sentence
        assert placed(whole(), broken, make_node("c", gpus=2)) == {"c": 2}
        assert "a has 3 of 4 GPUs free" in refused(whole(), used, make_node("c", gpus=2)).sentence

    def test_a_run_with_a_number_of_gpus_is_as_before(self) -> None:
        spec = make_spec(resources=Resources("local", gpus_per_node=2))
        assert needs(spec, make_node(gpus=4)) == demand(spec)

    def test_a_smaller_node_is_not_taken_for_more_processes_than_it_has_gpus(self) -> None:
        closed = make_node("big", gpus=8, closed="is drained")
        nodes = (closed, make_node("small", gpus=4))
        assert placed(whole(), *nodes) == {"small": 4}
        assert refused(whole(pytorch(8)), *nodes).sentence == (
            "Waiting for 1 node with all 8 GPUs: big is drained."
        )

    def test_processes_without_a_gpu_still_need_their_slots(self) -> None:
        demand_of_run = needs(whole(tensorflow(2, 1)), make_node("a", gpus=2), make_node("b", gpus=2))
        assert (demand_of_run.gpus, demand_of_run.slots) == (2, 2)

    def test_memory_that_only_a_smaller_node_has_decides(self) -> None:
        nodes = (
            make_node("big", gpus=8, memory_total=2**30, memory=2**30, has_limits=True),
            make_node("small", gpus=4, memory_total=2**40, memory=2**40, has_limits=True),
        )
        assert placed(whole(memory=2**35), *nodes) == {"small": 4}
        assert refused(whole(memory=2**41), *nodes).field == "resources.memory"

    def test_is_refused_with_the_numbers_if_too_few_nodes_are_equal(self) -> None:
        nodes = (make_node("a", gpus=8), make_node("b", gpus=4), make_node("c"))
        assert refused(whole(pytorch(None, 2)), *nodes) == Refusal(
            "The run needs all GPUs of 2 nodes with equally many, and the cluster has 1 node with 8 GPUs, "
            "1 node with 4 GPUs and 1 node with 0 GPUs; ask for at most 1 node, or give a number of GPUs per "
            "node.",
            "resources.gpus_per_node",
            permanent=True,
        )

    def test_waits_where_no_node_has_reported_yet(self) -> None:
        assert not refused(whole()).permanent


class TestWithoutGpus:
    def test_gets_a_slot_for_each_process_and_a_warning(self) -> None:
        spec = whole(pytorch(2, backend="gloo"))
        demand_of_run = needs(spec, make_node("cpu"))
        assert (demand_of_run.gpus, demand_of_run.slots) == (0, 2)
        finding = one(spec, "resources.gpus_per_node", nodes=(make_node("cpu"),))
        assert (finding.level, finding.message.split(",")[0]) == (
            "warning",
            "no node of the cluster has GPUs",
        )

    def test_there_is_no_warning_before_any_node_is_there(self) -> None:
        assert [item.field for item in found(whole(), nodes=())] == ["resources.cluster"]


class TestFindings:
    def test_compare_processes_with_the_number_of_the_nodes(self) -> None:
        assert one(whole(pytorch(16)), "distribution.process_count").message.startswith(
            "16 processes on a node with 8 requested GPU(s) would share devices"
        )
        assert not [item for item in found(whole(pytorch(16, 2))) if item.level != "hint"]

    def test_say_which_nodes_are_left_out(self) -> None:
        nodes = (make_node("a", gpus=8), make_node("b", gpus=4), make_node("cpu"))
        message = one(whole(pytorch(8)), "resources.gpus_per_node", nodes=nodes).message
        assert message.startswith(
            "the run gets 1 node with 8 GPUs, and none of the nodes with 0 and 4: all GPUs are"
        )


class TestPlan:
    def test_has_the_gpus_of_the_placement_and_the_spec_keeps_all(self) -> None:
        spec = whole(pytorch(None, 2), node_count=None)
        draft = draft_plan(spec, (make_node("a", gpus=4), make_node("b", gpus=4)))
        assert draft.plan is not None
        assert [len(process.gpus) for process in draft.plan.processes] == [4, 4]
        assert (draft.spec.resources.gpus_per_node, draft.spec.to_json()) == (4, spec.to_json())

    def test_cores_are_shared_among_as_many_processes_as_the_launcher_starts(self) -> None:
        command = ("torchrun", "--nproc_per_node", "gpu", "train.py")
        spec = make_spec(command=command, resources=ALL)
        (process,) = make_plan(spec, make_placement(gpus=4, cores=16)).processes
        assert process.env["OMP_NUM_THREADS"] == "4"


class TestQueue:
    def test_what_is_free_of_its_nodes_is_kept_for_the_run_at_the_head(self) -> None:
        nodes = (make_node("a", gpus=4, free=2), make_node("b", gpus=2))
        line: Line[str] = Line(nodes)
        first = needs(whole(pytorch(4)), *nodes)
        assert isinstance(line.ask(first), Refusal)
        assert line.wait(first, "first")
        later = line.ask(Demand(1, 2, 0))
        assert isinstance(later, Placement)
        assert later.head.name == "b", "what is free on a is claimed"

    @pytest.mark.parametrize(("free", "has_room"), [(4, True), (3, False)])
    def test_room_is_a_whole_node(self, free: int, has_room: bool) -> None:
        nodes = (make_node("a", gpus=4, free=free), make_node("big", gpus=8, free=7))
        line: Line[str] = Line(nodes)
        demand_of_run = needs(whole(), make_node("a", gpus=4))
        assert line.has_room(demand_of_run) is has_room


class TestScaling:
    def test_adds_a_node_of_the_right_size_only(self) -> None:
        waiting = needs(whole(), make_node("new", gpus=2, is_coming=True))
        bounds = Bounds(least=0, most=1, idle_s=60, gpus=2, slots=8)
        busy = ScalableNode(make_node("a", gpus=8, free=2), is_provided=False)
        assert decide(bounds, [busy], 0, 0, [waiting]) == Decision(add=1)
        assert decide(replace(bounds, gpus=4), [busy], 0, 0, [waiting]) == Decision()
