from __future__ import annotations

from tests.launch.builders import make_placement, make_plan, make_spec, mpi, pytorch
from trainhub_launch.printing import display_argv, show
from trainhub_launch.spec import Variable


class TestShownArgv:
    def test_what_is_known_is_filled_in_for_each_process(self) -> None:
        plan = make_plan(make_spec(pytorch(2), arguments=("--local_rank", "$LOCAL_RANK")), make_placement())
        assert [display_argv(process)[-1] for process in plan.processes] == ["0", "1"]

    def test_what_open_mpi_will_set_is_known_too(self) -> None:
        plan = make_plan(
            make_spec(mpi(2), arguments=("$OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE",)), make_placement()
        )
        assert [display_argv(process)[-1] for process in plan.processes] == ["0/2", "1/2"]

    def test_secrets_and_values_of_the_launch_show_their_place(self) -> None:
        spec = make_spec(
            pytorch(1),
            arguments=("$KEY", "$MASTER_PORT", "$HOME"),
            environment_variables={"KEY": Variable(secret="wandb")},
        )
        process = make_plan(spec, make_placement(), preview=True).processes[0]
        assert display_argv(process)[-3:] == ("<secret wandb>", "<assigned at launch>", "$HOME")


class TestShow:
    def test_no_secret_and_no_token_is_ever_in_it(self) -> None:
        spec = make_spec(environment_variables={"KEY": Variable(secret="wandb")})
        text = show(make_plan(spec, make_placement()))
        assert "KEY=<secret wandb>" in text
        assert "TRAINHUB_TOKEN=<assigned at launch>" in text

    def test_a_terminal_shows_control_characters_and_does_not_obey_them(self) -> None:
        text = show(make_plan(make_spec(arguments=("\x1b[2J\nnode 1", "\u202eevil")), make_placement()))
        assert r"$'\x1b[2J\nnode 1' $'\u202eevil'" in text
        assert "\x1b" not in text
