"""`check` says of scripts and notebooks what becomes of them, and runs none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainhub_azureml.__main__ import main

GOOD = """
from azureml.core import Workspace, Experiment, ScriptRunConfig
ws = Workspace.from_config()
print(ws.name + ws.location)
for run in Experiment(ws, "x").get_runs():
    print(run.id, run.get_details())
best = next(Experiment(ws, "x").get_runs())
best.download_file("a", "b")
"""
BAD = """
import azureml.core as core
import numpy as np
from azureml.core import Workspace, Keyvault
from azureml.core.compute import ComputeTarget, AmlCompute
from azureml.core.environment import Environment
from azureml.core.conda_dependencies import CondaDependencies
from azureml.train.automl import AutoMLConfig
from azureml.widgets import RunDetails

def submit(ws):
    vault = ws.get_default_keyvault()

NAME = "gpu-V100"
ws = core.Workspace.from_config()
target = ws.compute_targets[NAME]
other = ComputeTarget.create(ws, "cpu", AmlCompute.provisioning_configuration(vm_size="D2"))
env = Environment.get(ws, "AzureML-PyTorch-1.6-GPU")
cd = CondaDependencies.create(pip_packages=["torch==1.6.0", "numpy>=1.20"], python_version="3.7")
x = np.float(1) + np.float64(2)
method = os.environ["AZ_BATCHAI_PYTORCH_INIT_METHOD"]
run.unknown()
"""
MODELS = """
from azureml.core.model import InferenceConfig, Model
from azureml.train.dnn import PyTorch

def submit(ws):
    model = Model.register(ws, "model.pt", "birds")
    for other in Model.list(ws):
        print(other.version)
    path = Model.get_model_path("birds", _workspace=ws)
    model.add_tags({"a": Model.Framework.PYTORCH})
    estimator = PyTorch(".", compute_target="gpu", pip_packages=["torch==1.6.0"])
    estimator.run_config.environment.name = "x"
    Model.deploy(ws, "service", [model], InferenceConfig("score.py"))
"""


DATA = """
from azureml.core import Dataset, Datastore, Run, Workspace
ws = Workspace.from_config()
store = ws.get_default_datastore()
store.upload("data", "birds")
reference = store.path("birds").as_mount()
files = Dataset.File.from_files((store, "birds")).register(ws, "birds")
named = Dataset.get_by_name(ws, "birds").as_named_input("birds")
arguments = [named.as_mount(), named.as_download()]
table = Dataset.Tabular.from_delimited_files((store, "iris.csv"))
table.to_pandas_dataframe()
table.keep_columns(["x"])
Dataset.Tabular.from_sql_query("x")
Datastore.register_azure_file_share(ws)
Run.get_context().input_datasets["birds"]
"""


def check(capsys: pytest.CaptureFixture[str], *paths: Path) -> tuple[int, list[tuple[str, str]]]:
    """Returns the exit code, and level and call of each finding."""
    code = main(["check", "--json", *map(str, paths)])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, [(row["level"], row["call"]) for row in rows[:-1]]


def test_a_script_that_needs_no_change(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_folder / "good.py").write_text(GOOD)
    code, findings = check(capsys, own_folder)
    assert code == 0
    assert {level for level, _ in findings} == {"works"}
    calls = {call for _, call in findings}
    assert {
        "Run.id",
        "Run.get_details",
        "Run.download_file",
        "Experiment.get_runs",
        "Workspace.name",
    } <= calls


def test_a_script_that_does(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_folder / "bad.py").write_text(BAD)
    code, findings = check(capsys, own_folder / "bad.py")
    assert code == 1
    assert [finding for finding in findings if finding[0] != "works"] == [
        ("not offered", "azureml.core.Keyvault"),
        ("not offered", "azureml.train.automl"),
        ("not offered", "Workspace.get_default_keyvault"),
        ("mapping", '[compute."gpu-V100"]'),
        ("differs", "ComputeTarget.create"),
        ("differs", "AmlCompute.provisioning_configuration"),
        ("mapping", '[compute."cpu"]'),
        ("mapping", '[environment."AzureML-PyTorch-1.6-GPU"]'),
        ("pin", "torch==1.6.0"),
        ("numpy", "np.float"),
        ("differs", "AZ_BATCHAI_PYTORCH_INIT_METHOD"),
    ]


def test_models_and_estimators(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_folder / "models.py").write_text(MODELS)
    code, findings = check(capsys, own_folder)
    assert code == 1
    assert findings == [
        ("differs", "PyTorch"),
        ("works", "Model.register"),
        ("works", "Model.list"),
        ("works", "Model.version"),
        ("differs", "Model.get_model_path"),
        ("works", "Model.add_tags"),
        ("works", "Model.Framework"),
        ("works", "ModelFramework.PYTORCH"),
        ("differs", "PyTorch"),
        ("mapping", '[compute."gpu"]'),
        ("pin", "torch==1.6.0"),
        ("works", "PyTorch.run_config"),
        ("works", "RunConfiguration.environment"),
        ("works", "Environment.name"),
        ("not offered", "Model.deploy"),
        ("not offered", "InferenceConfig"),
    ]


def test_data(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_folder / "data.py").write_text(DATA)
    code, findings = check(capsys, own_folder)
    assert code == 1
    calls = {call for level, call in findings if level == "works"}
    assert {
        "Datastore.upload",
        "Datastore.path",
        "FileDatasetFactory.from_files",
        "FileDataset.register",
        "AbstractDataset.as_named_input",
        "DatasetConsumptionConfig.as_download",
        "TabularDatasetFactory.from_delimited_files",
        "TabularDataset.to_pandas_dataframe",
        "Run.input_datasets",
    } <= calls
    assert [finding for finding in findings if finding[0] != "works"] == [
        ("differs", "Workspace.get_default_datastore"),
        ("differs", "DataReference.as_mount"),
        ("differs", "Dataset.get_by_name"),
        ("differs", "DatasetConsumptionConfig.as_mount"),
        ("not offered", "TabularDataset.keep_columns"),
        ("not offered", "TabularDatasetFactory.from_sql_query"),
        ("not offered", "Datastore.register_azure_file_share"),
    ]


def test_notebooks_without_their_magic(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [
        "%matplotlib inline\n!pip install x\nfrom azureml.core import Run\n",
        "%%bash\nls | wc\n",
        ["run = Run.get_context()\n", "run.log('x', 1)\n", "run?\n"],
        "this is no Python",
    ]
    cells = [{"cell_type": "code", "source": source} for source in sources]
    (own_folder / "a.ipynb").write_text(json.dumps({"cells": [*cells, {"cell_type": "markdown"}]}))
    assert check(capsys, own_folder) == (0, [("works", "Run.get_context"), ("works", "Run.log")])


def test_files_of_packages(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_folder / "conda_dependencies.yml").write_text(
        "channels: [conda-forge]\ndependencies:\n- python=3.6.2 # old\n- numpy>=1.21,<=1.22\n- pip:\n"
        "  - azureml-defaults\n  - 'tensorflow-gpu==2.3.0'\n  - torchvision == 0.7.0\n"
    )
    (own_folder / "requirements.txt").write_text("--index-url https://x\nscipy==1.4.1\npandas\n")
    (own_folder / "environment.yml").write_text("services:\n  web: {image: x}\n")
    code, findings = check(capsys, own_folder)
    pins = ["python=3.6.2", "tensorflow-gpu==2.3.0", "torchvision == 0.7.0", "scipy==1.4.1"]
    assert (code, findings) == (1, [("pin", pin) for pin in pins])


def test_what_cannot_be_read_is_named(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_folder / "two.py").write_text("print 'python 2'\n")
    (own_folder / "broken.ipynb").write_text("{")
    code, findings = check(capsys, own_folder, own_folder / "missing.py")
    assert code == 1
    assert [level for level, _ in findings] == ["unreadable"] * 3


def test_the_text_names_places_and_sums_up(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_folder / "bad.py").write_text(BAD)
    (own_folder / "good.py").write_text(GOOD)
    assert main(["check", "bad.py", "good.py"]) == 1
    output = capsys.readouterr().out
    assert "  np.float: NumPy 1.24 has removed it: require numpy<1.24\n    bad.py:20\n" in output
    assert output.endswith("1 of 2 files need no change.\n")


@pytest.mark.parametrize("arguments", [["check"], ["check", "--html", "x.py"]])
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage:")
