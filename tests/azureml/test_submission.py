"""Commands, arguments, resources and environments of runs, and what is refused with a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.azureml.stub_hub import StubHub, node
from trainhub_azureml.compute import ComputeTarget
from trainhub_azureml.conda_dependencies import CondaDependencies
from trainhub_azureml.distributions import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from trainhub_azureml.environment import Environment
from trainhub_azureml.exceptions import (
    ActivityFailedException,
    ComputeTargetException,
    ExperimentExecutionException,
    UserErrorException,
)
from trainhub_azureml.experiment import Experiment
from trainhub_azureml.run_configuration import RunConfiguration, ScriptRunConfig
from trainhub_azureml.submission.command_line import split_command
from trainhub_azureml.workspace import Workspace
from trainhub_launch.processes import azureml


@pytest.fixture
def experiment(stub_hub: StubHub, own_folder: Path) -> Experiment:
    (own_folder / "train.py").write_text("print(1)\n")
    return Experiment(Workspace("s", "g", "team"), "e")


def spec_of(hub: StubHub, experiment: Experiment, **config: Any) -> dict[str, Any]:
    """Returns the spec of a run of train.py."""
    config = {"source_directory": ".", "script": "train.py", "compute_target": "gpu-cluster", **config}
    experiment.submit(ScriptRunConfig(**config))
    spec: dict[str, Any] = hub.bodies("/api/v1/runs/")[-1]
    return spec


class TestCommands:
    @pytest.mark.parametrize(
        ("command", "argv"),
        [
            ("python train.py --lr 0.1", ["python", "train.py", "--lr", "0.1"]),
            (
                ["python train.py --data", Path("/d"), "--epochs", 3],
                ["python", "train.py", "--data", "/d", "--epochs", "3"],
            ),
            (["python", "a.py", "--name 'two words'"], ["python", "a.py", "--name", "two words"]),
            ("torchrun --nnodes $N x.py ${RANK}", ["torchrun", "--nnodes", "$N", "x.py", "${RANK}"]),
            ("pip install . && python x.py $R", ["bash", "-c", "pip install . && python x.py $$R"]),
            ("export A=1\npython x.py", ["bash", "-c", "export A=1\npython x.py"]),
            ("A=1 python x.py", ["bash", "-c", "A=1 python x.py"]),
            ("python x.py > log.txt", ["bash", "-c", "python x.py > log.txt"]),
            ("echo '$HOME'", ["bash", "-c", "echo '$$HOME'"]),
            ("echo ${A:-1} $(date)", ["bash", "-c", "echo $${A:-1} $$(date)"]),
            ("python x.py it's", ["bash", "-c", "python x.py it's"]),
        ],
    )
    def test_a_shell_comes_only_where_one_is_needed(self, command: Any, argv: list[str]) -> None:
        assert split_command(command) == argv

    def test_variables_of_azure_keep_their_names_and_the_hub_is_asked_for_them(
        self, experiment: Experiment, stub_hub: StubHub
    ) -> None:
        spec = spec_of(stub_hub, experiment, arguments=["$AZ_BATCHAI_TASK_INDEX", "${AZUREML_RUN_ID}/x"])
        assert spec["arguments"] == ["$AZ_BATCHAI_TASK_INDEX", "${AZUREML_RUN_ID}/x"]
        assert azureml.WORKSPACE in spec["environment_variables"]

    def test_arguments_are_texts(self, experiment: Experiment, stub_hub: StubHub) -> None:
        arguments = ["--a", 1, "--b", 0.5, "--c", True, "--d", Path("x/y"), "--e", None]
        spec = spec_of(stub_hub, experiment, arguments=arguments)
        assert spec["arguments"] == ["--a", "1", "--b", "0.5", "--c", "True", "--d", "x/y", "--e", "None"]


class TestConfigurations:
    def test_everything_may_be_set_after_the_constructor(
        self, experiment: Experiment, stub_hub: StubHub
    ) -> None:
        config = ScriptRunConfig(source_directory=".", script="train.py", run_config=RunConfiguration())
        config.run_config.target = ComputeTarget(experiment.workspace, "cpu")
        config.run_config.environment = Environment.get(experiment.workspace, "TrainHub-PyTorch-2.13")
        config.run_config.environment.environment_variables["A"] = 1
        config.run_config.environment_variables = {"B": "2", "PYTHONPATH": "src"}
        config.run_config.max_run_duration_seconds = 60
        config.run_config.node_count = 2
        experiment.submit(config, tags={"k": None})
        spec = stub_hub.bodies("/api/v1/runs/")[-1]
        assert spec["resources"] == {"cluster": "cpu", "node_count": 2}
        variables = {"A": "1", "B": "2", "PYTHONPATH": "src:trainhub_azureml.pyz"}
        assert spec["environment_variables"] == {**variables, "AZUREML_ARM_WORKSPACE_NAME": "team"}
        assert (spec["limits"], spec["tags"]) == ({"timeout_s": 60}, {"k": ""})
        assert spec["environment"] == {"name": "TrainHub-PyTorch-2.13"}

    def test_the_older_way_to_configure_mpi(self, experiment: Experiment, stub_hub: StubHub) -> None:
        config = RunConfiguration(communicator="OpenMpi")
        config.mpi.process_count_per_node = 2
        config.node_count = 2
        spec = spec_of(stub_hub, experiment, run_config=config)
        assert spec["distribution"] == {"type": "mpi", "process_count_per_node": 2, "node_count": 2}
        assert spec["resources"]["gpus_per_node"] == 2

    def test_the_default_of_parameter_servers_is_that_of_v1(
        self, experiment: Experiment, stub_hub: StubHub
    ) -> None:
        spec = spec_of(stub_hub, experiment, distributed_job_config=TensorflowConfiguration())
        assert spec["distribution"] == {"type": "tensorflow", "worker_count": 1, "parameter_server_count": 1}

    def test_no_target_means_a_cluster_with_a_warning(
        self, experiment: Experiment, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]
    ) -> None:
        spec = spec_of(stub_hub, experiment, compute_target=None)
        assert "cluster" not in spec["resources"]
        assert "Azure would run it on this machine" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "case",
        [
            ((4, 4), 1, "all", "all GPUs of each, 4 at present, as with Azure"),
            ((4, 2), 1, "all", "all GPUs of each as with Azure"),
            ((4, 4), 2, 2, ""),
            ((0, 0), 1, 0, ""),
        ],
    )
    def test_whole_nodes_unless_several_processes_start_on_each(
        self,
        case: tuple[tuple[int, int], int, int | str, str],
        experiment: Experiment,
        stub_hub: StubHub,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        gpus, processes, expected, note = case
        stub_hub.nodes = [node(str(number), "gpu-cluster", count) for number, count in enumerate(gpus)]
        config = MpiConfiguration(process_count_per_node=processes, node_count=2)
        spec = spec_of(stub_hub, experiment, distributed_job_config=config)
        assert spec["resources"].get("gpus_per_node", 0) == expected
        errors = capsys.readouterr().err
        assert note in errors
        assert ("whole nodes" in errors) is bool(note)

    def test_what_is_known_to_fail_is_said(
        self, experiment: Experiment, stub_hub: StubHub, own_folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (own_folder / "train.py").write_text("import horovod.torch\nPORT = '6105'\nx = np.float(1)\n")
        stub_hub.findings = [{"level": "warning", "field": "resources", "message": "is small."}]
        spec_of(stub_hub, experiment)
        errors = capsys.readouterr().err
        for part in ("imports horovod", "names the port 6105", "uses np.float", "resources: is small."):
            assert part in errors


class TestEnvironments:
    def made(self, hub: StubHub, experiment: Experiment, environment: Environment) -> dict[str, Any]:
        spec = spec_of(hub, experiment, environment=environment)
        (body,) = hub.bodies("/api/v1/environments/")
        assert spec["environment"] == {"name": body["name"], "version": "1"}
        made: dict[str, Any] = body
        return made

    def test_conda_packages_become_a_conda_environment(
        self, experiment: Experiment, stub_hub: StubHub
    ) -> None:
        environment = Environment("my env")
        environment.python.conda_dependencies = CondaDependencies.create(
            conda_packages=["scikit-learn"], pip_packages=["azureml-sdk", "azureml-mlflow", "joblib"]
        )
        text = "channels:\n- conda-forge\ndependencies:\n- python\n- scikit-learn\n- pip:\n"
        text += "  - mlflow-skinny\n  - joblib\n"
        body = {"name": "my-env", "kind": "conda", "conda": text}
        assert self.made(stub_hub, experiment, environment) == body

    def test_the_same_environment_is_made_once(self, experiment: Experiment, stub_hub: StubHub) -> None:
        for _ in range(2):
            environment = Environment("once")
            environment.python.conda_dependencies.add_pip_package("numpy==2.1.0")
            spec_of(stub_hub, experiment, environment=environment)
        assert len(stub_hub.bodies("/api/v1/environments/")) == 1

    def test_an_image_and_a_dockerfile(
        self, experiment: Experiment, stub_hub: StubHub, own_folder: Path
    ) -> None:
        image = Environment.from_docker_image("img", "ghcr.io/team/train:1")
        assert self.made(stub_hub, experiment, image)["image"] == "ghcr.io/team/train:1"
        stub_hub.requests.clear()
        stub_hub.versions.clear()
        (own_folder / "Dockerfile").write_text("FROM python:3.11\n")
        file = Environment.from_dockerfile("file", own_folder / "Dockerfile")
        assert self.made(stub_hub, experiment, file)["dockerfile"] == "FROM python:3.11\n"

    def test_a_changed_curated_one_needs_a_name_of_its_own(
        self, experiment: Experiment, stub_hub: StubHub
    ) -> None:
        curated = Environment.get(experiment.workspace, "AzureML-PyTorch-1.6-GPU")
        curated.python.conda_dependencies.add_pip_package("pillow")
        with pytest.raises(UserErrorException, match=r"clone\(new_name="):
            spec_of(stub_hub, experiment, environment=curated)
        own = curated.clone("pytorch-with-pillow")
        packages = ["torch==2.13.0", "numpy", "pillow"]
        assert self.made(stub_hub, experiment, own)["requirements"] == packages

    def test_the_mapping_decides(self, experiment: Experiment, stub_hub: StubHub, own_folder: Path) -> None:
        (own_folder / "trainhub-azureml.toml").write_text(
            '[environment."AzureML-PyTorch-1.6-GPU"]\nuse = "vision@3"\n'
            '[environment."old"]\nrequirements = ["torch==2.13.0",\n  "numpy<1.24"]\npython = "3.11"\n'
        )
        curated = Environment.get(experiment.workspace, "azureml-pytorch-1.6-gpu")
        spec = spec_of(stub_hub, experiment, environment=curated)
        assert spec["environment"] == {"name": "vision", "version": "3"}
        old = Environment("old")
        old.python.conda_dependencies.add_pip_package("torch==1.6.0")
        body = self.made(stub_hub, experiment, old)
        assert (body["requirements"], body["python"]) == (["torch==2.13.0", "numpy<1.24"], "3.11")

    def test_saving_and_reading(self, experiment: Experiment, own_folder: Path) -> None:
        curated = Environment.get(experiment.workspace, "AzureML-PyTorch-1.6-GPU")
        curated.save_to_directory(path="saved")
        text = (own_folder / "saved" / "conda_dependencies.yml").read_text()
        assert "  - torch==2.13.0" in text
        read = Environment.from_conda_specification("mine", "saved/conda_dependencies.yml")
        assert list(read.python.conda_dependencies.pip_packages) == ["torch==2.13.0", "numpy"]
        with pytest.raises(UserErrorException, match="overwrite=True"):
            curated.save_to_directory(path="saved")

    def test_what_the_hub_cannot_make_says_why(
        self, experiment: Experiment, stub_hub: StubHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer = {"name": "x", "version": "1", "state": "failed", "failure": "No wheel of torch==1.6.0."}

        def environments(method: str, path: str, data: object) -> tuple[int, object]:
            return (201, answer) if method == "POST" else ((200, []) if path.count("/") == 4 else (404, {}))

        monkeypatch.setattr(stub_hub, "_environments", environments)
        environment = Environment("x")
        environment.python.conda_dependencies.add_pip_package("torch==1.6.0")
        with pytest.raises(ExperimentExecutionException, match=r"No wheel of torch==1.6.0. Correct"):
            environment.register(experiment.workspace)


class TestRefusals:
    @pytest.mark.parametrize(
        ("config", "sentence"),
        [
            ({"script": None}, "script is missing"),
            ({"script": "missing.py"}, "There is no script missing.py"),
            ({"script": "../train.py"}, "is not in source_directory"),
            ({"environment": "AzureML-PyTorch"}, r"give Environment.get\(workspace=ws"),
            ({"distributed_job_config": "mpi"}, "none of MpiConfiguration"),
            ({"distributed_job_config": PyTorchConfiguration("Nccl", 3, 2)}, "cannot be divided"),
            ({"distributed_job_config": MpiConfiguration(0)}, "process_count_per_node=0"),
            ({"arguments": "--epochs 5"}, "arguments must be a list"),
            ({"command": "python x.py"}, "either command, or script"),
        ],
    )
    def test_a_wrong_configuration(
        self, config: dict[str, Any], sentence: str, experiment: Experiment, stub_hub: StubHub
    ) -> None:
        with pytest.raises(UserErrorException, match=sentence):
            spec_of(stub_hub, experiment, **config)

    def test_an_unknown_cluster(self, experiment: Experiment, stub_hub: StubHub) -> None:
        with pytest.raises(ComputeTargetException, match="there are: gpu-cluster, cpu"):
            spec_of(stub_hub, experiment, compute_target="gpu-V100")

    def test_a_name_among_the_compute_targets_means_what_it_means_elsewhere(
        self, experiment: Experiment, stub_hub: StubHub
    ) -> None:
        with pytest.raises(KeyError) as refusal:
            _ = experiment.workspace.compute_targets["gpu-V100"]
        assert isinstance(refusal.value, ComputeTargetException)
        assert str(refusal.value).startswith("There is no cluster gpu-V100 on the hub; there are: gpu-")
        stub_hub.clusters = [{"name": "cpu"}]
        targets = experiment.workspace.compute_targets
        assert ("gpu-V100" in targets, targets["gpu-V100"].cluster) == (False, "cpu")

    def test_what_is_no_configuration(self, experiment: Experiment) -> None:
        with pytest.raises(UserErrorException, match="Submit a ScriptRunConfig"):
            experiment.submit(object())

    def test_an_ignore_file_that_leaves_the_package_out(
        self, experiment: Experiment, stub_hub: StubHub, own_folder: Path
    ) -> None:
        (own_folder / ".amlignore").write_text("*\n!train.py\n")
        with pytest.raises(UserErrorException, match="ignore file with the line !trainhub_azureml"):
            spec_of(stub_hub, experiment)

    def test_a_failed_run_raises_when_it_is_waited_for(
        self, experiment: Experiment, stub_hub: StubHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = experiment.submit(
            ScriptRunConfig(source_directory=".", script="train.py", compute_target="gpu-cluster")
        )
        stub_hub.run = {**stub_hub.run, "state": "Failed", "sentence": "Rank 0 exited with code 1."}
        monkeypatch.setattr(run, "_log_files", dict)
        with pytest.raises(ActivityFailedException, match="Rank 0 exited with code 1"):
            run.wait_for_completion()
        details = run.wait_for_completion(raise_on_error=False)
        assert (details["status"], "error" in details) == ("Failed", True)
