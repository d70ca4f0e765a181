from __future__ import annotations

from dataclasses import replace

from jobs.views.plan_comparison import VariableDifference, differences
from trainhub_launch.frameworks.pytorch.configuration import PyTorchConfiguration
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.planner import plan
from trainhub_launch.scheduler.placement import PlacedNode, Placement
from trainhub_launch.spec import ExampleSource, RunSpec

SPEC = RunSpec(
    source=ExampleSource("digits"), script="train.py", distribution=PyTorchConfiguration(process_count=2)
)


def planned(*gpus: str, port: int | None = None, spec: RunSpec = SPEC) -> LaunchPlan:
    node = PlacedNode("alpha", "10.0.0.1", gpus, 0 if gpus else 2, 8)
    return plan(spec, Placement((node,)), {"alpha": [port]} if port else {})


def found(preview: LaunchPlan, ran: LaunchPlan) -> dict[str, VariableDifference]:
    return {item.name: item for item in differences(preview, ran)}


class TestDifferences:
    def test_the_same_plan_has_none(self) -> None:
        assert differences(planned(port=6105), planned(port=6105)) == ()

    def test_what_the_preview_left_open_is_expected(self) -> None:
        port = found(planned(), planned(port=6107))["MASTER_PORT"]
        assert (port.previewed, port.ran, port.expected) == ("<assigned at launch>", "6107", True)
        assert port.who == "ranks 0-1"

    def test_provisional_gpus_are_expected_to_be_replaced(self) -> None:
        items = differences(planned("<GPU 0 of alpha>", "<GPU 1 of alpha>"), planned("GPU-a", "GPU-b"))
        assert items
        assert all(item.expected for item in items)

    def test_a_changed_argument_is_not_expected_and_comes_first(self) -> None:
        first = differences(planned(), planned(port=6105, spec=replace(SPEC, arguments=("--lr", "1"))))[0]
        assert (first.name, first.expected) == ("command", False)
        assert first.ran == "python train.py --lr 1"

    def test_a_rank_that_the_preview_did_not_have_is_named(self) -> None:
        more = replace(SPEC, distribution=PyTorchConfiguration(process_count=3))
        assert found(planned(port=6105), planned(port=6105, spec=more))["process"].who == "rank 2"

    def test_a_rank_that_did_not_run_is_named(self) -> None:
        more = replace(SPEC, distribution=PyTorchConfiguration(process_count=3))
        missing = found(planned(port=6105, spec=more), planned(port=6105))["process"]
        assert (missing.who, missing.previewed, missing.ran) == ("rank 2", "planned", "")
        assert not missing.expected

    def test_gpus_that_the_preview_did_not_have_are_not_expected(self) -> None:
        assert not found(planned(port=6105), planned("GPU-a", "GPU-b", port=6105))["GPUs"].expected

    def test_ranks_with_a_gap_are_listed(self) -> None:
        item = VariableDifference((0, 2), "LR", "1", "2", expected=False)
        assert item.who == "ranks 0, 2"

    def test_another_node_is_a_difference(self) -> None:
        beta = PlacedNode("beta", "10.0.0.2", (), 2, 8)
        moved = plan(SPEC, Placement((beta,)), {"beta": [6105]})
        node = found(planned(port=6105), moved)["node"]
        assert (node.previewed, node.ran, node.expected) == ("alpha", "beta", False)
