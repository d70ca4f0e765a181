from __future__ import annotations

import pytest
from hypothesis import given

from tests.launch.builders import make_node, make_spec, mpi, pytorch, tensorflow
from tests.launch.findings.findings_of import command, found, one, script
from tests.launch.test_spec import specs
from trainhub_launch.findings import Finding, reserved
from trainhub_launch.spec import EnvironmentRef, Resources, RunSpec, Variable


class TestAll:
    @pytest.mark.parametrize(
        "spec",
        [
            make_spec(),
            script("--output_dir ./outputs --epochs 25", pytorch(2, backend="gloo")),
            script("--epochs 50 --local_rank $LOCAL_RANK", pytorch(8, 2), gpus=4),
            command(
                "python -m torch.distributed.launch --nproc_per_node 4 --nnodes 2 --node_rank $NODE_RANK "
                "--master_addr $MASTER_ADDR --master_port $MASTER_PORT --use_env train.py --epochs 50",
                pytorch(None, 2),
                gpus=4,
            ),
            command(
                "python -m torch.distributed.launch --nproc_per_node 4 --use_env train.py --epochs 50", gpus=4
            ),
            script("--max_epochs 50 --devices 2 --strategy ddp --num_nodes 2", pytorch(None, 2), gpus=2),
            script("", mpi(4, 2), gpus=4),
            script("--rank $OMPI_COMM_WORLD_RANK --home $HOME --price $$5", mpi(2)),
        ],
    )
    def test_a_run_as_the_guides_show_it_has_nothing_to_remark(self, spec: RunSpec) -> None:
        assert found(spec) == []

    @given(specs)
    def test_any_spec_gets_an_answer_sorted_by_weight(self, spec: RunSpec) -> None:
        answer = found(spec, environments=("TrainHub-PyTorch-2.13",))
        weights = [("error", "warning", "hint").index(finding.level) for finding in answer]
        assert weights == sorted(weights)
        assert len(set(answer)) == len(answer)

    def test_several_mistakes_are_all_named_at_once(self) -> None:
        spec = make_spec(
            pytorch(4, 2),
            script="trian.py",
            arguments=("$RNAK",),
            environment=EnvironmentRef("nothing"),
            environment_variables={"RANK": Variable(value="0")},
            resources=Resources(gpus_per_node=16),
        )
        errors = {finding.field for finding in found(spec, environments=()) if finding.level == "error"}
        assert errors == {
            "script",
            "arguments[0]",
            "environment.name",
            "environment_variables.RANK",
            "resources.gpus_per_node",
        }

    def test_is_plain_json(self) -> None:
        assert Finding("hint", "script", "text").to_json() == {
            "level": "hint",
            "field": "script",
            "message": "text",
            "action": "",
            "link": "",
        }


class TestCounts:
    def test_a_count_that_does_not_divide(self) -> None:
        answer = one(script("", pytorch(5, 2)), "distribution.process_count")
        assert answer == Finding(
            "error",
            "distribution.process_count",
            "5 processes cannot be divided evenly among 2 nodes; use 4 or 6, or change node_count",
        )

    def test_more_processes_than_gpus(self) -> None:
        answer = one(script("", pytorch(8, 2), gpus=2), "distribution.process_count")
        assert answer.level == "error"
        assert "4 processes on a node with 2 requested GPU(s)" in answer.message
        assert "ask for 4 GPUs on each node, or give at most process_count 4" in answer.message

    def test_more_processes_than_gpus_is_only_doubtful_where_nccl_is_not_used(self) -> None:
        assert (
            one(script("", pytorch(4, backend="gloo"), gpus=2), "distribution.process_count").level
            == "warning"
        )
        assert one(script("", mpi(4), gpus=2), "distribution.process_count_per_node").level == "warning"

    def test_fewer_processes_than_gpus(self) -> None:
        assert one(script("", pytorch(2), gpus=4), "distribution.process_count").level == "hint"

    def test_a_forgotten_process_count(self) -> None:
        answer = one(script("", pytorch(None, 2), gpus=4), "distribution.process_count")
        assert (answer.level, answer.message.endswith(", give 8")) == ("hint", True)

    def test_a_forgotten_distribution(self) -> None:
        answer = one(script("", gpus=4), "distribution")
        assert "choose PyTorch with process_count 4" in answer.message

    def test_one_mpi_process_beside_many_gpus(self) -> None:
        assert one(script("", mpi(1, 2), gpus=4), "distribution.process_count_per_node").level == "hint"

    def test_nccl_without_gpus(self) -> None:
        answer = one(script("", pytorch(2)), "distribution.communication_backend")
        assert (answer.level, "choose gloo" in answer.message) == ("hint", True)

    def test_gloo_with_gpus_and_a_backend_that_is_not_built_in(self) -> None:
        assert (
            one(script("", pytorch(2, backend="gloo"), gpus=2), "distribution.communication_backend").level
            == "hint"
        )
        assert (
            one(script("", pytorch(2, backend="mpi")), "distribution.communication_backend").level
            == "warning"
        )

    def test_tensorflow_workers_that_would_share_a_gpu(self) -> None:
        spec = make_spec(tensorflow(4), resources=Resources(node_count=1, gpus_per_node=2))
        assert one(spec, "distribution.worker_count").level == "warning"

    def test_tensorflow_workers_that_do_not_divide(self) -> None:
        spec = make_spec(tensorflow(5), resources=Resources(node_count=2))
        answer = one(spec, "distribution.worker_count")
        assert (answer.level, answer.message) == (
            "hint",
            "5 workers on 2 nodes: some nodes get more than others",
        )

    def test_keras_under_several_workers(self) -> None:
        assert "TF_USE_LEGACY_KERAS=1" in one(make_spec(tensorflow(2)), "environment_variables").message
        told = make_spec(tensorflow(2), environment_variables={"TF_USE_LEGACY_KERAS": Variable(value="1")})
        assert found(told) == []

    def test_more_nodes_than_tensorflow_workers(self) -> None:
        assert (
            one(make_spec(tensorflow(2), resources=Resources(node_count=3)), "resources.node_count").level
            == "error"
        )


class TestSource:
    def test_a_script_that_is_not_there_offers_the_near_ones(self) -> None:
        answer = one(make_spec(script="trian.py"), "script")
        assert answer == Finding(
            "error", "script", "trian.py is not in the source folder; did you mean train.py?"
        )

    def test_a_script_in_another_folder_is_found_by_its_name(self) -> None:
        assert "did you mean src/model.py?" in one(make_spec(script="model.py"), "script").message

    def test_a_folder_without_python_says_so(self) -> None:
        assert "no Python file" in one(make_spec(), "script", paths=("readme.md",)).message

    def test_the_script_of_a_command_is_looked_for_too(self) -> None:
        assert one(command("torchrun --nproc_per_node 2 trian.py"), "command").level == "error"
        assert one(command("python -u trian.py"), "command").level == "error"
        assert found(command("python -m package.train")) == []
        assert found(command("python /opt/tools/train.py")) == []

    def test_unknown_contents_are_not_judged(self) -> None:
        assert found(make_spec(script="anything.py"), paths=None) == []

    def test_another_spelling_of_its_path_is_fine(self) -> None:
        assert found(make_spec(script="./train.py")) == []

    @pytest.mark.parametrize(
        "name",
        [
            "/etc/passwd.py",
            "../train.py",
            "src/../train.py",
            "~/train.py",
            "python train.py",
            "-c",
            "a.ipynb",
            "run.sh",
        ],
    )
    def test_what_is_no_script_in_the_folder(self, name: str) -> None:
        assert one(make_spec(script=name), "script").level == "error"

    def test_secrets_among_the_files(self) -> None:
        answer = one(make_spec(), "source", paths=("train.py", ".env", "keys/server.pem"))
        assert (answer.level, ".env, keys/server.pem" in answer.message) == ("warning", True)


class TestEnvironment:
    def test_one_that_does_not_exist_lists_those_that_do(self) -> None:
        answer = one(
            make_spec(environment=EnvironmentRef("torch")),
            "environment.name",
            environments=("TrainHub-PyTorch-2.13",),
        )
        assert (answer.level, "there are: TrainHub-PyTorch-2.13, system" in answer.message) == ("error", True)

    def test_a_name_copied_from_azure_is_answered_with_ours(self) -> None:
        spec = make_spec(environment=EnvironmentRef("AzureML-PyTorch-1.6-GPU"))
        assert (
            "TrainHub-PyTorch-2.13"
            in one(spec, "environment.name", environments=("TrainHub-PyTorch-2.13",)).message
        )

    def test_those_that_exist_are_fine(self) -> None:
        assert found(make_spec(), environments=()) == []
        assert found(make_spec(environment=EnvironmentRef("mine")), environments=("mine",)) == []

    @pytest.mark.parametrize("name", ["AzureML-mine", "azureml", "TrainHub-x", "trainhub-x"])
    def test_reserved_names_are_refused_with_a_sentence(self, name: str) -> None:
        assert "belong to curated environments" in reserved(name)
        assert reserved("mine-AzureML") == ""


class TestFit:
    def test_what_can_never_fit_is_an_error(self) -> None:
        answer = one(script("", pytorch(16), gpus=16), "resources.gpus_per_node")
        assert (answer.level, "comes nearest" in answer.message) == ("error", True)

    def test_what_only_has_to_wait_is_a_hint(self) -> None:
        busy = (make_node("a", gpus=2, free=0),)
        answer = one(script("", pytorch(2), gpus=2), "resources.gpus_per_node", nodes=busy)
        assert (answer.level, answer.message.endswith("The run will wait in the queue.")) == ("hint", True)

    def test_mpi_on_nodes_without_it_is_doubtful_as_the_environment_may_bring_it(self) -> None:
        answer = one(script("", mpi(2)), "distribution", nodes=(make_node("bare", mpi=False),))
        assert (answer.level, "bare reports no Open MPI" in answer.message) == ("warning", True)
        assert found(script("", mpi(2)), nodes=(make_node("bare", mpi=False), make_node("b"))) == []

    def test_a_cluster_without_nodes_is_a_warning_and_the_rest_is_still_checked(self) -> None:
        wrong, waiting = found(script("$RNAK", pytorch(2, backend="gloo")), nodes=())
        assert (wrong.level, wrong.field) == ("error", "arguments[0]")
        assert (waiting.level, waiting.field) == ("warning", "resources.cluster")
