"""Each block of the guides becomes exactly the spec that it means."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.azureml.snippets import BEGIN, FOUR, PYTORCH, SNIPPETS
from tests.azureml.stub_hub import RUN, StubHub

Execute = Callable[[str], dict[str, Any]]
VARIABLES = {"PYTHONPATH": "trainhub_azureml.pyz", "AZUREML_ARM_WORKSPACE_NAME": "team"}
CONDA = """channels:
- conda-forge
dependencies:
- python=3.6.2
- pip:
  - azureml-defaults
  - torch==1.6.0
  - torchvision==0.7.0
  - future==0.17.1
  - pillow
"""


@pytest.fixture(autouse=True)
def project(own_folder: Path, stub_hub: StubHub) -> None:
    (own_folder / "src").mkdir()
    (own_folder / "src" / "train.py").write_text("print('trains')\n")
    config = {"subscription_id": "s", "resource_group": "g", "workspace_name": "team"}
    (own_folder / "config.json").write_text(json.dumps(config))


def submitted(hub: StubHub) -> dict[str, Any]:
    spec = dict(hub.bodies("/api/v1/runs/")[-1])
    assert spec.pop("source") == {"type": "snapshot", "id": "a" * 64}
    return spec


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_block_becomes_this_spec(name: str, execute: Execute, stub_hub: StubHub) -> None:
    snippet = SNIPPETS[name]
    run = execute(BEGIN + snippet.text)["run"]
    assert run.id == RUN
    assert submitted(stub_hub) == {
        **snippet.spec,
        "environment": snippet.environment,
        "environment_variables": VARIABLES,
    }


def test_a_dry_run_prints_the_spec_and_the_plan_and_submits_nothing(
    execute: Execute, stub_hub: StubHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINHUB_DRY_RUN", "1")
    with pytest.raises(SystemExit) as ending:
        execute(BEGIN + SNIPPETS["mpi_per_process"].text)
    output = capsys.readouterr()
    spec, end = json.JSONDecoder().raw_decode(output.out)
    assert ending.value.code == 0
    assert (spec["resources"], spec["environment"], output.out[end:].strip()) == (FOUR, PYTORCH, "the plan")
    assert "AzureML-PyTorch-1.6-GPU is not on this hub: TrainHub-PyTorch-2.13 is used instead" in output.err
    assert stub_hub.bodies("/api/v1/runs/") == []


def test_a_dry_run_needs_no_hub(
    execute: Execute, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TRAINHUB_URL")
    monkeypatch.delenv("TRAINHUB_TOKEN")
    monkeypatch.setenv("TRAINHUB_DRY_RUN", "1")
    with pytest.raises(SystemExit):
        execute(BEGIN + SNIPPETS["pytorch_per_process"].text)
    output = capsys.readouterr()
    assert json.loads(output.out)["resources"] == FOUR
    assert "No hub was asked whether it has a cluster gpu-cluster." in output.err


def test_the_environment_of_the_pytorch_guide_is_made_without_the_packages_of_azure(
    execute: Execute, own_folder: Path, stub_hub: StubHub
) -> None:
    (own_folder / "conda_dependencies.yml").write_text(CONDA)
    text = """
pytorch_env = Environment.from_conda_specification(
    name='pytorch-1.6-gpu', file_path='./conda_dependencies.yml')
pytorch_env.docker.enabled = True
pytorch_env.docker.base_image = 'mcr.microsoft.com/azureml/openmpi3.1.2-cuda10.1-cudnn7-ubuntu18.04'
"""
    execute(BEGIN + text + SNIPPETS["birds_with_arguments"].text)
    (body,) = stub_hub.bodies("/api/v1/environments/")
    packages = ["torch==1.6.0", "torchvision==0.7.0", "future==0.17.1", "pillow"]
    assert body == {"name": "pytorch-1.6-gpu", "kind": "pip", "python": "3.6", "requirements": packages}
    assert submitted(stub_hub)["environment"] == {"name": "pytorch-1.6-gpu", "version": "1"}


def test_a_cluster_that_is_not_there_is_mapped_or_named(
    execute: Execute, own_folder: Path, stub_hub: StubHub
) -> None:
    text = """
from azureml.core import Workspace
from azureml.core.compute import ComputeTarget, AmlCompute
from azureml.core.compute_target import ComputeTargetException
ws = Workspace.from_config()
cluster_name = "gpu-V100"
try:
    compute_target = ComputeTarget(workspace=ws, name=cluster_name)
    how = 'Found existing compute target'
except ComputeTargetException as error:
    how = str(error)
"""
    assert execute(text)["how"] == (
        "There is no cluster gpu-V100 on the hub; there are: gpu-cluster, cpu. Map it by "
        '[compute."gpu-V100"] in trainhub-azureml.toml.'
    )
    (own_folder / "trainhub-azureml.toml").write_text(
        '[compute."gpu-V100"]\ncluster = "cpu"\ngpus_per_node = 0\n'
    )
    variables = execute(text)
    assert variables["how"] == "Found existing compute target"
    assert variables["compute_target"].cluster == "cpu"


def test_creating_a_cluster_gives_the_only_one(
    execute: Execute, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]
) -> None:
    stub_hub.clusters = [{"name": "dgx"}]
    text = """
from azureml.core import Workspace
from azureml.core.compute import ComputeTarget, AmlCompute
ws = Workspace.from_config()
compute_config = AmlCompute.provisioning_configuration(vm_size='STANDARD_NC6', max_nodes=4)
compute_target = ComputeTarget.create(ws, 'other', compute_config)
compute_target.wait_for_completion(show_output=True, min_node_count=None, timeout_in_minutes=20)
"""
    assert execute(text)["compute_target"].cluster == "dgx"
    output = capsys.readouterr()
    assert output.out == "The cluster dgx is ready.\n"
    assert "There is no cluster other: dgx, the only one, is used." in output.err
    assert "No machines STANDARD_NC6 are made for other" in output.err
