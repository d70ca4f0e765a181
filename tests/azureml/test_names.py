"""The names of the SDK v1: every spelling is the same object, what is not offered says what to use, and
another package of the name is neither damaged nor mixed in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.lazy_names import OFFERED
from trainhub_azureml.runner import NAMES

PROJECT = Path(__file__).resolve().parent.parent.parent


def python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *arguments], env={**env, **variables}, capture_output=True, text=True, check=False
    )


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def other_package(tmp_path: Path) -> Path:
    """A stand-in for another package of the name, with the layout of the original and of its plugin."""
    begin = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
    files = {
        "azureml/__init__.py": begin,
        "azureml/core/__init__.py": "Workspace = 'the other'\n",
        "azureml/pipeline/__init__.py": "x = 'the other'\n",
        "azureml/mlflow/__init__.py": "x = 'the plugin'\n",
    }
    return write(tmp_path / "site", files)


def test_every_module_can_be_imported(names: None) -> None:
    import importlib

    for name in sorted(OFFERED):
        module = importlib.import_module(name)
        for attribute in getattr(module, "__all__", ()):
            assert getattr(module, attribute) is not None


def test_misplaced_imports_are_the_same_objects(names: None) -> None:
    from azureml._base_sdk_common import user_agent  # type: ignore[import-not-found]
    from azureml._restclient.constants import RunStatus  # type: ignore[import-not-found]
    from azureml.core import (  # type: ignore[import-not-found]
        Dataset,
        Datastore,
        Environment,
        compute_target,
        runconfig,
    )
    from azureml.core.compute import ComputeTargetException  # type: ignore[import-not-found]
    from azureml.core.conda_dependencies import CondaDependencies  # type: ignore[import-not-found]
    from azureml.core.dataset import Dataset as OtherDataset  # type: ignore[import-not-found]
    from azureml.core.environment import CondaDependencies as Other  # type: ignore[import-not-found]
    from azureml.data import FileDataset  # type: ignore[import-not-found]
    from azureml.data.azure_storage_datastore import AzureBlobDatastore  # type: ignore[import-not-found]
    from azureml.data.file_dataset import FileDataset as OtherFiles  # type: ignore[import-not-found]
    from azureml.exceptions import ComputeTargetException as General  # type: ignore[import-not-found]
    from azureml.exceptions._azureml_exception import (  # type: ignore[import-not-found]
        UserErrorException,
    )
    from azureml.telemetry import set_diagnostics_collection  # type: ignore[import-not-found]

    assert Dataset is OtherDataset
    assert FileDataset is OtherFiles
    assert AzureBlobDatastore is Datastore
    assert compute_target.ComputeTargetException is ComputeTargetException is General
    assert runconfig.CondaDependencies is CondaDependencies is Other
    assert runconfig.Environment is Environment
    assert runconfig.DEFAULT_CPU_IMAGE != runconfig.DEFAULT_GPU_IMAGE
    assert issubclass(UserErrorException, Exception)
    assert RunStatus.COMPLETED == "Completed"
    user_agent.append("library", "1")
    set_diagnostics_collection(send_diagnostics=True)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("from azureml.opendatasets import MNIST", "name their addresses in Dataset.File.from_files"),
        ("from azureml.data import DataType", "set them with pandas after to_pandas_dataframe"),
        ("from azureml.train.dnn import Horovod", "azureml.train.dnn.Horovod: Horovod is not offered"),
        ("from azureml.pipeline.core import Pipeline", "submit the steps one after another"),
        ("import azureml.train.automl", "automated machine learning is not offered"),
        ("from azureml.core.webservice import AciWebservice", "web services are not offered"),
        ("from azureml.core.model import ModelPackage", "web services are not offered"),
        ("from azureml import pipeline", "submit the steps one after another"),
        ("from azureml.train.hyperdrive import nothing", "nothing is not offered by TrainHub"),
        ("import azureml.nothing.at.all", "azureml.nothing: azureml.nothing is not offered."),
    ],
)
def test_what_is_not_offered_says_what_to_use(statement: str, sentence: str, names: None) -> None:
    with pytest.raises(ImportError, match="azureml") as error:
        exec(statement)  # noqa: S102 - an import
    assert sentence in str(error.value)


def test_what_scripts_import_beside_a_model_is_refused_when_it_is_used(names: None) -> None:
    from azureml.core.model import InferenceConfig, Model  # type: ignore[import-not-found]

    for use in (InferenceConfig, Model.deploy, Model.package, Model.profile):
        with pytest.raises(UserErrorException, match="web services are not offered: download the model"):
            use(entry_script="score.py")


def test_behind_another_package_that_one_is_used(other_package: Path) -> None:
    text = "import azureml.core; print(azureml.core.Workspace)"
    done = python("-c", text, PYTHONPATH=f"{other_package}:{NAMES}:{PROJECT}")
    assert (done.stdout, done.stderr) == ("the other\n", "")


def test_in_front_of_another_package_nothing_of_it_is_mixed_in(other_package: Path) -> None:
    text = "import azureml.core, azureml.mlflow\nprint(azureml.mlflow.x)\nimport azureml.pipeline"
    done = python("-c", text, PYTHONPATH=f"{NAMES}:{other_package}:{PROJECT}")
    assert done.stdout == "the plugin\n"
    assert "azureml.pipeline: pipelines are not offered" in done.stderr.splitlines()[-1]


def test_the_runner_puts_the_names_first_for_the_script_and_its_processes(
    other_package: Path, own_folder: Path
) -> None:
    files = {
        "scripts/beside.py": "x = 'beside'\n",
        "scripts/submit.py": (
            "import sys, subprocess, urllib, beside\nfrom azureml.core import Workspace\n"
            "urllib.request.Request\n"
            "print(Workspace.__module__, sys.argv, beside.x, __name__, flush=True)\n"
            "subprocess.run([sys.executable, '-c', 'import azureml.core; print(azureml.core.VERSION)'])\n"
        ),
    }
    write(own_folder, files)
    path = f"{other_package}:{PROJECT}"
    done = python("-m", "trainhub_azureml", "scripts/submit.py", "--lr", "1", PYTHONPATH=path)
    first, second = done.stdout.splitlines()
    assert first == "trainhub_azureml.workspace ['scripts/submit.py', '--lr', '1'] beside __main__"
    assert second == "1.62.0"


@pytest.mark.parametrize(("arguments", "code"), [((), 2), (("--help",), 0), (("missing.py",), 1)])
def test_usage(arguments: tuple[str, ...], code: int) -> None:
    done = python("-m", "trainhub_azureml", *arguments, PYTHONPATH=str(PROJECT))
    assert done.returncode == code
    assert "Traceback" not in done.stderr
