"""Each estimator becomes exactly the spec that it means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.azureml.snippets import FOUR, PYTORCH, TENSORFLOW, WHOLE
from tests.azureml.stub_hub import StubHub, environment
from trainhub_azureml.environment import Environment
from trainhub_azureml.estimators.estimator import Estimator, script_run_config_of
from trainhub_azureml.estimators.frameworks import Chainer, Keras, PyTorch, SKLearn
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.experiment import Experiment
from trainhub_azureml.workspace import Workspace

Execute = Callable[[str], dict[str, Any]]
BEGIN = """
from azureml.core import Workspace, Experiment
from azureml.core.runconfig import MpiConfiguration
from azureml.train.dnn import PyTorch, TensorFlow, Chainer, Keras, Mpi, ParameterServer, Gloo, Nccl
from azureml.train.estimator import Estimator
from azureml.train.sklearn import SKLearn
ws = Workspace('s', 'g', 'team')
compute_target = ws.compute_targets['gpu-cluster']
mpi = MpiConfiguration()
mpi.process_count_per_node = 2
"""
NCCL = {"type": "pytorch", "process_count": None, "node_count": 2, "communication_backend": "nccl"}
SCIKIT = {"name": "my-AzureML-Scikit-learn-CPU", "version": "1"}
ESTIMATORS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "script_params": (
        "PyTorch('src', entry_script='train.py', compute_target=compute_target, use_gpu=True, "
        "script_params={'--epochs': 3, '--verbose': '', '--lr': 0.1, '--name': None})",
        {"arguments": ["--epochs", "3", "--verbose", "--lr", "0.1", "--name"]},
        PYTORCH,
    ),
    "mpi_of_the_node_count": (
        "PyTorch('src', entry_script='train.py', compute_target=compute_target, node_count=2)",
        {"distribution": {"type": "mpi", "process_count_per_node": 1, "node_count": 2}},
        PYTORCH,
    ),
    "mpi_as_an_object": (
        "TensorFlow('src', entry_script='train.py', compute_target='gpu-cluster', node_count=2, "
        "distributed_training=Mpi(process_count_per_node=4))",
        {"distribution": {"type": "mpi", "process_count_per_node": 4, "node_count": 2}, "resources": FOUR},
        TENSORFLOW,
    ),
    "mpi_of_run_configurations": (
        "PyTorch('src', entry_script='train.py', compute_target=compute_target, node_count=2, "
        "distributed_training=mpi)",
        {
            "distribution": {"type": "mpi", "process_count_per_node": 2, "node_count": 2},
            "resources": {**FOUR, "gpus_per_node": 2},
        },
        PYTORCH,
    ),
    "nccl_with_a_shared_file": (
        "PyTorch('src', entry_script='train.py', compute_target=compute_target, node_count=2, "
        "distributed_training=Nccl(), framework_version='1.4', script_params={"
        "'--dist-url': '$AZ_BATCHAI_PYTORCH_INIT_METHOD', '--rank': '$AZ_BATCHAI_TASK_INDEX'})",
        {"arguments": ["--dist-url", "env://", "--rank", "$AZ_BATCHAI_TASK_INDEX"], "distribution": NCCL},
        PYTORCH,
    ),
    "gloo_by_its_name": (
        "PyTorch('src', entry_script='train.py', compute_target=compute_target, node_count=2, "
        "process_count_per_node=4, distributed_backend='gloo')",
        {"distribution": {**NCCL, "process_count": 8, "communication_backend": "gloo"}, "resources": FOUR},
        PYTORCH,
    ),
    "parameter_server": (
        "TensorFlow('src', entry_script='train.py', compute_target=compute_target, node_count=2, "
        "distributed_training=ParameterServer(worker_count=2), framework_version='2.0', use_gpu=True)",
        {"distribution": {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 1}},
        TENSORFLOW,
    ),
    "parameter_server_by_its_name": (
        "TensorFlow('src', entry_script='train.py', compute_target=compute_target, worker_count=2, "
        "parameter_server_count=0, distributed_backend='ps')",
        {"distribution": {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 0}},
        TENSORFLOW,
    ),
    "keras": ("Keras('src', entry_script='train.py', compute_target=compute_target)", {}, TENSORFLOW),
    "sklearn": ("SKLearn('src', entry_script='train.py', compute_target=compute_target)", {}, SCIKIT),
    "no_framework": (
        "Estimator('src', entry_script='train.py', compute_target=compute_target, use_docker=False, "
        "max_run_duration_seconds=60, shm_size='2g', _disable_validation=True)",
        {"limits": {"timeout_s": 60}},
        {"name": "system"},
    ),
}


@pytest.fixture(autouse=True)
def project(own_folder: Path, stub_hub: StubHub) -> None:
    (own_folder / "src").mkdir()
    (own_folder / "src" / "train.py").write_text("print('trains')\n")


@pytest.fixture
def experiment(project: None) -> Experiment:
    return Experiment(Workspace("s", "g", "team"), "e")


def spec_of(hub: StubHub, experiment: Experiment, estimator: Estimator) -> dict[str, Any]:
    experiment.submit(estimator)
    spec: dict[str, Any] = hub.bodies("/api/v1/runs/")[-1]
    return spec


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_becomes_this_spec(name: str, execute: Execute, stub_hub: StubHub) -> None:
    text, fields, named = ESTIMATORS[name]
    execute(f"{BEGIN}run = Experiment(ws, 'e').submit({text})")
    spec = dict(stub_hub.bodies("/api/v1/runs/")[-1])
    variables = {"PYTHONPATH": "trainhub_azureml.pyz", "AZUREML_ARM_WORKSPACE_NAME": "team"}
    assert spec.pop("source")["type"] == "snapshot"
    assert spec.pop("environment_variables") == variables
    expected = {"experiment": "e", "script": "train.py", "resources": WHOLE, "environment": named, **fields}
    assert spec == expected


class TestEnvironments:
    def test_packages_become_an_environment_of_its_own(
        self, experiment: Experiment, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]
    ) -> None:
        estimator = PyTorch(
            "src",
            entry_script="train.py",
            compute_target="gpu-cluster",
            pip_packages=["azureml-sdk", "pillow", "numpy<2"],
            framework_version="1.6",
            use_gpu=True,
        )
        estimator.conda_dependencies.add_pip_package("tqdm")
        spec = spec_of(stub_hub, experiment, estimator)
        (body,) = stub_hub.bodies("/api/v1/environments/")
        assert body["requirements"] == ["torch==2.13.0", "pillow", "numpy<2", "tqdm"]
        assert spec["environment"] == {"name": body["name"], "version": "1"}
        errors = capsys.readouterr().err
        assert "AzureML-PyTorch-1.6-GPU is not on this hub: TrainHub-PyTorch-2.13 is used" in errors
        assert "azureml-sdk is not installed" in errors
        assert "PyTorch: estimators were deprecated in the SDK v1 itself" in errors

    def test_packages_of_azure_alone_change_nothing(self, experiment: Experiment, stub_hub: StubHub) -> None:
        estimator = PyTorch("src", entry_script="train.py", pip_packages=["azureml-dataprep[pandas,fuse]"])
        assert spec_of(stub_hub, experiment, estimator)["environment"] == PYTORCH

    def test_conda_packages_replace_those_of_the_framework(
        self, experiment: Experiment, stub_hub: StubHub
    ) -> None:
        spec_of(stub_hub, experiment, Keras("src", entry_script="train.py", conda_packages=["scikit-learn"]))
        (body,) = stub_hub.bodies("/api/v1/environments/")
        assert body["kind"] == "conda"
        assert body["conda"].endswith("- python\n- scikit-learn\n- pip:\n  - 'tensorflow==2.21.*'\n")

    @pytest.mark.parametrize("package", ["pytorch=1.6", "pytorch::pytorch-nightly"])
    def test_a_framework_of_conda_replaces_that_of_pypi(
        self, package: str, experiment: Experiment, stub_hub: StubHub
    ) -> None:
        estimator = PyTorch("src", entry_script="train.py")
        estimator.conda_dependencies.add_conda_package(package)
        spec_of(stub_hub, experiment, estimator)
        (body,) = stub_hub.bodies("/api/v1/environments/")
        assert package in body["conda"]
        assert "torch==2.13.0" not in body["conda"]

    def test_files_of_packages_lie_beside_the_script(
        self, experiment: Experiment, stub_hub: StubHub, own_folder: Path
    ) -> None:
        (own_folder / "src" / "env.yml").write_text("dependencies:\n- python=3.11\n- pip:\n  - scipy\n")
        (own_folder / "requirements.txt").write_text("--extra-index-url https://x\nrich\n")
        estimator = Estimator(
            "src",
            entry_script="train.py",
            conda_dependencies_file_path="env.yml",
            pip_requirements_file="requirements.txt",
        )
        spec_of(stub_hub, experiment, estimator)
        (body,) = stub_hub.bodies("/api/v1/environments/")
        assert body["requirements"] == ["scipy", "--extra-index-url https://x", "rich"]
        assert body["python"] == "3.11"

    def test_an_image_that_manages_its_packages(self, experiment: Experiment, stub_hub: StubHub) -> None:
        image: dict[str, Any] = {"custom_docker_base_image": "ghcr.io/team/train:1", "user_managed": True}
        spec_of(stub_hub, experiment, PyTorch("src", entry_script="train.py", **image))
        assert stub_hub.bodies("/api/v1/environments/")[0]["image"] == "ghcr.io/team/train:1"

    @pytest.mark.parametrize(
        ("image", "kinds"), [("azureml/bert:pretrain-openmpi3.1.2", ["image"]), ("azureml/openmpi4.1.0", [])]
    )
    def test_of_images_of_azure_those_with_packages_count(
        self, image: str, kinds: list[str], experiment: Experiment, stub_hub: StubHub
    ) -> None:
        image = f"mcr.microsoft.com/{image}"
        estimator = PyTorch("src", entry_script="train.py", custom_docker_image=image)
        estimator._estimator_config.environment.python.user_managed_dependencies = True
        spec_of(stub_hub, experiment, estimator)
        bodies = stub_hub.bodies("/api/v1/environments/")
        assert [body["kind"] for body in bodies] == kinds
        assert [body["image"] for body in bodies] == [image for _ in kinds]

    def test_an_environment_of_ones_own(
        self, experiment: Experiment, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]
    ) -> None:
        own = Environment("mine")
        own.python.conda_dependencies.add_pip_package("numpy")
        estimator = SKLearn(
            "src", entry_script="train.py", environment_definition=own, pip_packages=["scipy"]
        )
        estimator.run_config.environment_variables["A"] = 1
        spec = spec_of(stub_hub, experiment, estimator)
        assert (spec["environment"]["name"], spec["environment_variables"]["A"]) == ("mine", "1")
        assert "environment_definition is used, and pip_packages not" in capsys.readouterr().err

    def test_the_mapping_names_the_framework_with_its_version(
        self, experiment: Experiment, stub_hub: StubHub, own_folder: Path
    ) -> None:
        (own_folder / "trainhub-azureml.toml").write_text(
            '[environment."AzureML-PyTorch-1.4-CPU"]\nuse = "vision@3"\n'
        )
        stub_hub.environments.append(environment("vision", "3", "image"))
        options: dict[str, Any] = {"entry_script": "train.py", "framework_version": 1.4}
        spec = spec_of(stub_hub, experiment, PyTorch("src", **options))
        assert spec["environment"] == {"name": "vision", "version": "3"}
        with pytest.raises(UserErrorException, match="vision@3 has no list to which packages can be added"):
            spec_of(stub_hub, experiment, PyTorch("src", pip_packages=["tqdm"], **options))


def test_a_list_gives_an_argument_several_values() -> None:
    params = {"--metrics": ["rmse", "mae"], "--verbose": "", "--sizes": (1, 2)}
    config = script_run_config_of(PyTorch("src", entry_script="train.py", script_params=params))
    assert config.arguments == ["--metrics", "rmse", "mae", "--verbose", "--sizes", 1, 2]


def test_data_stays_the_object_that_it_is() -> None:
    class NamedInput:
        name = "birds"

        def __bool__(self) -> bool:
            return False

    data = NamedInput()
    estimator = PyTorch("src", entry_script="train.py", script_params={"--data": data}, inputs=[data])
    config = script_run_config_of(estimator)
    assert config.arguments == ["--data", data]
    assert config.run_config.data == {"birds": data}
    assert config.run_config is estimator.run_config


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: PyTorch("src", vm_size="STANDARD_NC6"), "give compute_target, the name of a cluster"),
        (lambda: Chainer("src"), "no environment with Chainer"),
        (lambda: PyTorch("src", entry_scrip="train.py"), "PyTorch: entry_scrip is not offered"),
        (lambda: PyTorch("src", pip_packages="tqdm"), r"pip_packages: give a list .* \['tqdm'\]"),
        (lambda: PyTorch("src", distributed_backend="x"), "none of mpi, ps, gloo and nccl"),
        (lambda: script_run_config_of(PyTorch("src")), "entry_script is missing"),
        (lambda: PyTorch("src", conda_dependencies_file="no.yml"), "no.yml cannot be read"),
        (
            lambda: script_run_config_of(PyTorch("src", entry_script="a.py", inputs=[1])),
            "inputs: 1 has no name",
        ),
    ],
)
def test_what_is_wrong_names_the_remedy(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(UserErrorException, match=sentence):
        make()
