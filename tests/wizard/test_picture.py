"""A plan as the page draws it."""

from __future__ import annotations

from jobs.wizard import picture
from tests.launch.builders import make_node, make_placement, make_plan, make_spec, mpi, pytorch, tensorflow
from trainhub_launch.scheduler.placement import Demand, Placement, provisional
from trainhub_launch.spec import Variable


class TestDraw:
    def test_numbers_processes_by_rank_and_puts_gpus_under_them(self) -> None:
        drawn = picture.draw(make_plan(make_spec(pytorch(4, 2)), make_placement(2, 2)))
        assert [[square.rank for square in box.squares] for box in drawn.boxes] == [[0, 1], [2, 3]]
        assert (drawn.process_count, drawn.node_count, drawn.gpu_count) == (4, 2, 4)
        assert drawn.boxes[1].squares[1].gpus == ("GPU-2b",)

    def test_provisional_gpus_are_shown_by_index(self) -> None:
        placement = provisional(Demand(nodes=1, gpus=2, slots=0), (make_node(gpus=2),))
        assert isinstance(placement, Placement)
        drawn = picture.draw(make_plan(make_spec(pytorch(2)), placement))
        assert [square.gpus for square in drawn.boxes[0].squares] == [("GPU 0",), ("GPU 1",)]

    def test_devices_that_are_not_chosen_yet_are_named_by_their_place(self) -> None:
        placement = provisional(Demand(nodes=1, gpus=2, slots=0), (make_node(gpus=2),))
        assert isinstance(placement, Placement)
        table = picture.tabulate(make_plan(make_spec(), placement))
        devices = next(
            variable for variable in table.rows[0].variables if variable.name == "CUDA_VISIBLE_DEVICES"
        )
        assert (devices.text, devices.at_launch) == ("GPU 0 to 1, by UUID", True)

    def test_what_was_filled_in_keeps_what_was_written(self) -> None:
        spec = make_spec(pytorch(2, backend="gloo"), arguments=("--me=$RANK",))
        drawn = picture.draw(make_plan(spec, make_placement()), rank=1)
        assert drawn.chosen.words[-1] == picture.Word("--me=1", "--me=$RANK")

    def test_shows_who_starts_mpi_ranks(self) -> None:
        assert (
            picture.draw(make_plan(make_spec(mpi(4)), make_placement())).launcher[0].text.endswith("mpirun")
        )

    def test_a_large_run_is_counted_not_drawn_in_full(self) -> None:
        drawn = picture.draw(make_plan(make_spec(mpi(100, 20)), make_placement(20)))
        assert drawn.process_count == 2000
        assert drawn.boxes[0].hidden == 100 - picture.MAX_SQUARES
        assert drawn.hidden_nodes == 20 - picture.MAX_BOXES


class TestTabulate:
    def test_shares_what_all_have_and_keeps_apart_what_differs(self) -> None:
        table = picture.tabulate(make_plan(make_spec(tensorflow(2)), make_placement(2)))
        assert all("TF_CONFIG" in {variable.name for variable in row.variables} for row in table.rows)
        assert "TF_CONFIG" not in {variable.name for variable in table.shared}

    def test_says_what_open_mpi_sets(self) -> None:
        table = picture.tabulate(make_plan(make_spec(mpi(2)), make_placement()))
        own = {variable.name: variable.setter for variable in table.rows[1].variables}
        assert own["OMPI_COMM_WORLD_RANK"] == "Open MPI"
        assert {variable.name: variable.setter for variable in table.shared}[
            "OMPI_COMM_WORLD_SIZE"
        ] == "Open MPI"

    def test_marks_what_the_user_set_and_what_comes_at_launch(self) -> None:
        variables = {"A": Variable(value="1"), "KEY": Variable(secret="wandb")}
        spec = make_spec(pytorch(2), environment_variables=variables)
        table = picture.tabulate(make_plan(spec, make_placement()), {"A", "KEY"})
        marks = {variable.name: variable for variable in table.shared}
        assert marks["A"].is_mine
        assert (marks["KEY"].text, marks["KEY"].at_launch) == ("secret wandb", True)
        assert marks["TRAINHUB_TOKEN"].at_launch
        assert not marks["TRAINHUB_TOKEN"].is_mine

    def test_one_process_shows_its_whole_environment(self) -> None:
        table = picture.tabulate(make_plan(make_spec(), make_placement()))
        assert table.shared == ()
        assert "TRAINHUB_RUN_ID" in {variable.name for variable in table.rows[0].variables}
