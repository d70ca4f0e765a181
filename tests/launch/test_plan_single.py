from __future__ import annotations

import pytest

from tests.launch.builders import ALWAYS, CPU, environment, make_placement, make_plan, make_spec
from trainhub_launch.errors import SpecError
from trainhub_launch.plan import Reference
from trainhub_launch.spec import Resources, Variable


class TestEnvironment:
    def test_a_cpu_run_gets_exactly_the_contract(self) -> None:
        process = make_plan(make_spec(), make_placement()).processes[0]
        assert set(process.env) == ALWAYS | CPU

    def test_a_gpu_run_gets_exactly_the_contract(self) -> None:
        process = make_plan(make_spec(), make_placement(gpus=2)).processes[0]
        assert set(process.env) == ALWAYS
        assert process.env["CUDA_VISIBLE_DEVICES"] == "GPU-1a,GPU-1b"
        assert process.gpus == ("GPU-1a", "GPU-1b")

    def test_a_cpu_run_cannot_touch_a_gpu_of_somebody_else(self) -> None:
        assert make_plan(make_spec(), make_placement()).processes[0].env["CUDA_VISIBLE_DEVICES"] == ""

    def test_what_the_launch_tells_stays_a_reference(self) -> None:
        env = make_plan(make_spec(), make_placement()).processes[0].env
        assert [env[f"TRAINHUB_{name}"] for name in ("RUN_ID", "ATTEMPT", "URL", "TOKEN")] == [
            Reference("launch", name) for name in ("run_id", "attempt", "url", "token")
        ]
        assert env["PYTHONPATH"] == Reference("launch", "node_dir")

    def test_one_process_has_all_cores(self) -> None:
        assert (
            environment(make_plan(make_spec(), make_placement(cores=6)).processes[0])["OMP_NUM_THREADS"]
            == "6"
        )

    def test_processes_of_a_launcher_share_the_cores(self) -> None:
        spec = make_spec(command=("torchrun", "--nproc-per-node=4", "train.py"))
        assert environment(make_plan(spec, make_placement(cores=6)).processes[0])["OMP_NUM_THREADS"] == "1"


class TestCommand:
    def test_a_script_runs_in_the_environments_python(self) -> None:
        process = make_plan(
            make_spec(script="src/train.py", arguments=("--epochs", "50")), make_placement()
        ).processes[0]
        assert process.argv == ("python", "src/train.py", "--epochs", "50")
        assert process.log_name == "70_driver_log.txt"
        assert process.decides

    def test_a_command_stays_as_it_is(self) -> None:
        command = (
            "python",
            "-m",
            "torch.distributed.launch",
            "--nproc_per_node",
            "4",
            "--use_env",
            "train.py",
        )
        assert make_plan(make_spec(command=command), make_placement()).processes[0].argv == command

    def test_a_script_with_a_dollar_in_its_name_is_not_expanded(self) -> None:
        assert make_plan(make_spec(script="$HOME.py"), make_placement()).processes[0].argv == (
            "python",
            "$$HOME.py",
        )

    @pytest.mark.parametrize(
        "word", ["a b", "x;y", "it's", '"', "naïve", "$(id)", "`id`", "&&", "", "\n", "--x=1 2"]
    )
    def test_a_hostile_value_stays_one_argument(self, word: str) -> None:
        assert make_plan(make_spec(arguments=(word, "last")), make_placement()).processes[0].argv[2:] == (
            word,
            "last",
        )


class TestUserVariables:
    def test_are_added_plain_and_by_reference(self) -> None:
        spec = make_spec(environment_variables={"A": Variable(value=""), "B": Variable(secret="key")})
        env = make_plan(spec, make_placement()).processes[0].env
        assert env["A"] == ""
        assert env["B"] == Reference("secret", "key")

    @pytest.mark.parametrize(
        "name", ["OMP_NUM_THREADS", "PYTHONUNBUFFERED", "PYTHONPATH", "ACCELERATE_USE_CPU"]
    )
    def test_may_tune_what_only_tunes(self, name: str) -> None:
        spec = make_spec(environment_variables={name: Variable(value="mine")})
        assert make_plan(spec, make_placement()).processes[0].env[name] == "mine"

    @pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "TRAINHUB_TOKEN", "TRAINHUB_ANYTHING"])
    def test_may_not_say_who_a_process_is(self, name: str) -> None:
        with pytest.raises(SpecError) as raised:
            make_plan(make_spec(environment_variables={name: Variable(value="mine")}), make_placement())
        assert raised.value.field == f"environment_variables.{name}"
        assert name in raised.value.message


class TestPlacement:
    def test_one_of_another_size_is_refused(self) -> None:
        with pytest.raises(SpecError, match="needs 1 node"):
            make_plan(make_spec(resources=Resources()), make_placement(2))
