from __future__ import annotations

from typing import Any

import pytest

from tests.launch.builders import make_spec, mpi, pytorch
from tests.launch.findings.findings_of import command, found, one, script
from trainhub_launch.spec import Variable


class TestLaunchers:
    @pytest.mark.parametrize(
        "line",
        [
            "mpirun -np 4 python train.py",
            "/usr/bin/mpiexec -n 4 python train.py",
            "horovodrun -np 4 python train.py",
            "deepspeed train.py --deepspeed",
            "srun python train.py",
            "python -m deepspeed.launcher.runner train.py",
        ],
    )
    def test_of_the_head_node_are_ours(self, line: str) -> None:
        answer = one(command(line), "command")
        assert answer.level == "error"
        assert "MPI distribution" in answer.message

    def test_of_the_head_node_inside_a_shell_are_doubtful(self) -> None:
        assert (
            one(make_spec(command=("bash", "-c", "mpirun -np 4 python train.py")), "command").level
            == "warning"
        )

    @pytest.mark.parametrize(
        "line",
        [
            "torchrun --nproc_per_node 2 train.py",
            "python -m torch.distributed.launch --nproc_per_node=2 train.py",
            "python3 -u -m torch.distributed.run --nproc-per-node 2 train.py",
            "accelerate launch --num_processes 2 train.py",
        ],
    )
    def test_of_one_node_are_not_started_per_process(self, line: str) -> None:
        answer = one(command(line, pytorch(2, backend="gloo")), "distribution.process_count")
        assert answer.level == "error"
        assert "leave process_count out" in answer.message

    def test_of_one_node_are_not_started_per_mpi_rank(self) -> None:
        spec = command("torchrun --nproc_per_node 2 train.py", mpi(2))
        assert one(spec, "distribution.process_count_per_node").level == "error"

    def test_start_no_more_processes_than_gpus(self) -> None:
        answer = one(command("torchrun --nproc_per_node 8 train.py", pytorch(), gpus=4), "command")
        assert answer.level == "error"
        assert "more than the 4 GPU(s)" in answer.message

    def test_may_leave_gpus_idle(self) -> None:
        assert (
            one(command("torchrun --nproc_per_node=2 train.py", pytorch(), gpus=4), "command").level == "hint"
        )

    def test_wait_for_as_many_nodes_as_there_are(self) -> None:
        answer = one(
            command("torchrun --nnodes 2 --nproc_per_node 2 train.py", pytorch(backend="gloo")), "command"
        )
        assert (answer.level, "waits for 2 node(s), and the run has 1" in answer.message) == ("error", True)

    def test_on_several_nodes_must_know_their_rank_and_where_to_meet(self) -> None:
        answer = one(
            command("torchrun --nnodes 2 --nproc_per_node 2 train.py", pytorch(None, 2, "gloo")), "command"
        )
        assert answer.message.endswith(
            "--node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port $MASTER_PORT"
        )

    def test_under_mpi_take_their_rank_from_open_mpi(self) -> None:
        line = "torchrun --nnodes 2 --master-addr $MASTER_ADDR --master-port $MASTER_PORT train.py"
        answer = one(command(line, mpi(1, 2)), "command")
        assert answer.message.endswith("--node-rank $OMPI_COMM_WORLD_RANK")

    def test_with_the_same_number_on_every_node_would_all_be_the_same(self) -> None:
        line = (
            "torchrun --nnodes 2 --node_rank 0 --master_addr $MASTER_ADDR --master_port $MASTER_PORT train.py"
        )
        assert "use $NODE_RANK instead" in one(command(line, pytorch(None, 2, "gloo")), "command").message

    def test_with_a_rendezvous_of_their_own_need_nothing_more(self) -> None:
        line = (
            "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT "
            "--nproc_per_node 2 train.py"
        )
        assert found(command(line, pytorch(None, 2, "gloo"))) == []

    def test_options_given_to_a_script(self) -> None:
        answer = one(script("--nproc_per_node 2", pytorch(2, backend="gloo")), "arguments[0]")
        assert (answer.level, "option of torchrun" in answer.message) == ("warning", True)


class TestLightning:
    def test_wants_one_process_a_node(self) -> None:
        answer = one(
            script("--max_epochs 50 --devices 2 --num_nodes 2", pytorch(4, 2), gpus=2),
            "distribution.process_count",
        )
        assert (answer.level, "leave process_count out" in answer.message) == ("warning", True)

    def test_waits_for_as_many_nodes_as_there_are(self) -> None:
        answer = one(
            script("--max_epochs 50 --devices 2 --num_nodes 4", pytorch(None, 2), gpus=2), "arguments[4]"
        )
        assert (answer.level, "wait for 4 node(s)" in answer.message) == ("error", True)

    def test_uses_no_more_devices_than_a_node_has(self) -> None:
        answer = one(
            script("--max_epochs 50 --devices 4 --num_nodes 2", pytorch(None, 2), gpus=2), "arguments[2]"
        )
        assert (answer.level, answer.message) == (
            "error",
            "4 devices are more than the 2 GPU(s) of a node",
        )

    def test_flags_of_version_1(self) -> None:
        line = "--max_epochs 50 --gpus 2 --accelerator ddp --num_nodes 2"
        assert "Lightning 1" in one(script(line, pytorch(None, 2), gpus=2), "arguments").message


class TestTransformers:
    GLUE = "--model_name_or_path bert --task_name mnli --do_train --output_dir outputs/mnli"

    def test_per_process_need_the_local_rank_as_an_argument(self) -> None:
        answer = one(
            script(self.GLUE, pytorch(8), gpus=8, name="run_glue.py"), "arguments", paths=("run_glue.py",)
        )
        assert (answer.level, "--local_rank and $LOCAL_RANK" in answer.message) == ("warning", True)

    @pytest.mark.parametrize(
        "given", ["--local_rank $LOCAL_RANK", "--local_rank=$LOCAL_RANK", "--local-rank=$LOCAL_RANK"]
    )
    def test_that_have_it_are_fine(self, given: str) -> None:
        assert (
            found(
                script(f"{self.GLUE} {given}", pytorch(8), gpus=8, name="run_glue.py"), paths=("run_glue.py",)
            )
            == []
        )

    def test_as_a_command_need_it_too(self) -> None:
        spec = command(f"python train.py {self.GLUE}", pytorch(2, backend="gloo"))
        assert one(spec, "command").level == "warning"

    def test_under_a_launcher_or_alone_need_nothing(self) -> None:
        assert found(command(f"torchrun --nproc_per_node 8 train.py {self.GLUE}", pytorch(), gpus=8)) == []
        assert found(script(self.GLUE)) == []


class TestReferences:
    def test_to_an_unknown_name_offer_the_near_ones(self) -> None:
        answer = one(script("--x $LOCAL_RNAK", pytorch(2, backend="gloo")), "arguments[1]")
        assert (answer.level, "did you mean $LOCAL_RANK" in answer.message) == ("error", True)

    def test_to_a_quite_unknown_name_list_what_there_is(self) -> None:
        assert "TRAINHUB_RUN_ID" in one(script("--x ${ZZZ}"), "arguments[1]").message

    @pytest.mark.parametrize(
        ("distribution", "name", "remedy"),
        [
            (pytorch(), "LOCAL_RANK", "give process_count"),
            (pytorch(2), "OMPI_COMM_WORLD_RANK", "it is $RANK"),
            (mpi(1, 2), "RANK", "it is $OMPI_COMM_WORLD_RANK"),
            (mpi(1, 2), "NODE_RANK", "process_count_per_node 1 it is $OMPI_COMM_WORLD_RANK"),
            (None, "MASTER_ADDR", "choose the PyTorch distribution"),
            (None, "OMPI_COMM_WORLD_RANK", "choose the MPI distribution"),
        ],
    )
    def test_to_a_name_of_another_way_to_start_say_which(
        self, distribution: Any, name: str, remedy: str
    ) -> None:
        answer = one(script(f"--x=${name}", distribution), "arguments[0]")
        assert (answer.level, remedy in answer.message) == ("error", True)

    def test_to_the_users_own_variables_and_to_home_are_fine(self) -> None:
        spec = make_spec(arguments=("$DATA/x", "$HOME"), environment_variables={"DATA": Variable(value="/d")})
        assert found(spec) == []

    def test_to_a_secret_are_refused_because_everybody_on_the_node_reads_arguments(self) -> None:
        spec = make_spec(arguments=("--key=${KEY}",), environment_variables={"KEY": Variable(secret="key")})
        answer = one(spec, "arguments[0]")
        assert (answer.level, "let the script read the variable KEY" in answer.message) == ("error", True)

    def test_to_open_mpis_node_rank_are_not_what_they_seem(self) -> None:
        answer = one(script("--machine=$OMPI_COMM_WORLD_NODE_RANK", mpi(4)), "arguments[0]")
        assert answer.level == "warning"
        assert "give process_count_per_node 1 and use $OMPI_COMM_WORLD_RANK" in answer.message

    def test_with_shell_defaults_are_not_expanded(self) -> None:
        assert one(script("${RANK:-0}", pytorch(2, backend="gloo")), "arguments[0]").level == "warning"

    def test_in_values_of_variables_are_not_expanded(self) -> None:
        spec = make_spec(environment_variables={"OUT": Variable(value="$HOME/out")})
        assert one(spec, "environment_variables.OUT").level == "hint"


class TestVariables:
    @pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "TRAINHUB_TOKEN", "RANK", "MASTER_PORT"])
    def test_of_the_contract_are_not_the_users(self, name: str) -> None:
        spec = make_spec(pytorch(2, backend="gloo"), environment_variables={name: Variable(value="1")})
        answer = one(spec, f"environment_variables.{name}")
        assert (answer.level, name in answer.message) == ("error", True)

    def test_that_tune_may_be_changed_and_say_what_they_replace(self) -> None:
        spec = make_spec(environment_variables={"OMP_NUM_THREADS": Variable(value="4")})
        assert one(spec, "environment_variables.OMP_NUM_THREADS").level == "hint"

    def test_that_make_lightning_hang(self) -> None:
        spec = make_spec(pytorch(backend="gloo"), environment_variables={"LOCAL_RANK": Variable(value="0")})
        assert "Lightning" in one(spec, "environment_variables.LOCAL_RANK").message

    @pytest.mark.parametrize(
        "name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "password", "AZURE_STORAGE_SAS"]
    )
    def test_named_like_secrets_are_hinted_at_without_showing_them(self, name: str) -> None:
        answer = one(
            make_spec(environment_variables={name: Variable(value="hunter2")}),
            f"environment_variables.{name}",
        )
        assert answer.level == "hint"
        assert "hunter2" not in answer.message

    @pytest.mark.parametrize(
        "name", ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "TOKEN_COUNT", "SECRET_PATH", "KEYS"]
    )
    def test_that_only_sound_so_are_left_alone(self, name: str) -> None:
        assert found(make_spec(environment_variables={name: Variable(value="3")})) == []

    @pytest.mark.parametrize(
        "value",
        ["hf_" + "a" * 30, "ghp_" + "b" * 36, "postgres://me:pass@db/x", "https://x/y?sig=" + "c" * 20],
    )
    def test_that_look_like_secrets_are_hinted_at_whatever_they_are_called(self, value: str) -> None:
        answer = one(make_spec(environment_variables={"X": Variable(value=value)}), "environment_variables.X")
        assert (answer.level, value in answer.message) == ("hint", False)

    def test_held_as_secrets_are_fine(self) -> None:
        assert found(make_spec(environment_variables={"HF_TOKEN": Variable(secret="hf")})) == []

    def test_secrets_among_arguments_are_hinted_at(self) -> None:
        assert one(script("--api_key abcdef"), "arguments[0]").level == "hint"
        answer = one(script("--db postgres://me:pass@db/x"), "arguments[1]")
        assert (answer.level, "me:pass" in answer.message) == ("hint", False)
        assert found(script("--api_key $TRAINHUB_TOKEN --pad_token <pad> --max_tokens 5")) == []


class TestArguments:
    @pytest.mark.parametrize(
        "line", ["--master_port 29500", "--master-port=6105", "--dist-url tcp://$MASTER_ADDR:29500"]
    )
    def test_a_fixed_port(self, line: str) -> None:
        answer = one(script(line, pytorch(2, backend="gloo")), "arguments[0]")
        assert (answer.level, "$MASTER_PORT" in answer.message) == ("hint", True)

    def test_outputs_that_would_be_lost(self) -> None:
        assert one(script("--output_dir /tmp/mnli_output"), "arguments[0]").level == "hint"
        assert found(script("--output_dir=outputs/run")) == []

    @pytest.mark.parametrize("word", ["&&", "|", ">", "2>&1"])
    def test_shell_operators(self, word: str) -> None:
        assert one(script(f"a {word} b"), "arguments[1]").level == "warning"

    def test_shell_substitution(self) -> None:
        assert one(script("--x=$(nproc)"), "arguments[0]").level == "hint"
        assert found(make_spec(command=("bash", "-c", "echo $(nproc)"))) == []

    def test_a_home_folder_by_its_tilde(self) -> None:
        assert "$HOME" in one(script("~/data"), "arguments[0]").message

    def test_a_whole_line_as_one_item(self) -> None:
        answer = one(make_spec(command=("python train.py --epochs 5",)), "command[0]")
        assert (answer.level, "one item for each word" in answer.message) == ("error", True)

    def test_an_empty_program(self) -> None:
        assert one(make_spec(command=("", "x")), "command[0]").level == "error"
