"""Snippets of the guides for the Azure ML SDK v1, as they are written, train on two hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.azureml.snippets import BEGIN, SNIPPETS
from tests.hosts.azureml.trainings import LONG, TRAININGS, Training
from tests.hosts.bench import CLUSTER, Hosts
from tests.hub import PROJECT

pytestmark = [pytest.mark.hosts, pytest.mark.frameworks, pytest.mark.mpi, pytest.mark.slow]
# What the names of the guides mean here: the interpreter of these hosts has the frameworks.
MAPPING = f"""
[compute."gpu-cluster"]
cluster = "{CLUSTER}"
[environment."AzureML-PyTorch-1.6-GPU"]
use = "system"
[environment."AzureML-TensorFlow-2.3-GPU"]
use = "system"
"""
END = """
run.wait_for_completion(show_output=True)
model = run.register_model(model_name='digits', model_path='outputs/model.pt')
run.download_file(name='outputs/model.pt', output_file_path='./model/model.pt')
losses = run.get_metrics()['loss']
print('epochs', len(losses), 'better', losses[-1] < losses[0] / 2, 'model', model.run_id)
"""


@pytest.mark.parametrize(
    "training",
    [*TRAININGS, *(pytest.param(training, marks=pytest.mark.long) for training in LONG)],
    ids=lambda training: training.snippet,
)
def test_a_snippet_trains_registers_and_downloads_its_model(
    hosts: Hosts, tmp_path: Path, training: Training
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(training.script)
    (tmp_path / "config.json").write_text(
        '{"subscription_id": "s", "resource_group": "g", "workspace_name": "w"}'
    )
    (tmp_path / "trainhub-azureml.toml").write_text(MAPPING)
    (tmp_path / "submit.py").write_text(BEGIN + SNIPPETS[training.snippet].text + END)
    variables = {
        "TRAINHUB_URL": hosts.hub.url,
        "TRAINHUB_TOKEN": hosts.hub.owner_token(),
        "TRAINHUB_CA_FILE": str(hosts.hub.own_folder / "tls" / "ca.pem"),
        "HOME": str(tmp_path),
        "PYTHONPATH": str(PROJECT),
    }
    done = subprocess.run(
        [sys.executable, "-m", "trainhub_azureml", "submit.py"],
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    words = done.stdout.split()
    assert words[-6:-1] == ["epochs", str(training.epochs), "better", "True", "model"], (
        done.stdout + done.stderr
    )
    detail = hosts.runs.detail(words[-1])
    assert len({member["node"] for member in detail["members"]}) == training.hosts
    logs = [
        hosts.runs.log(words[-1], name).decode()
        for name in hosts.runs.logs(words[-1])
        if name.startswith("70_")
    ]
    for rank in range(training.ranks):
        assert f"rank {rank} of {training.ranks} is done\n" in "".join(logs)
    assert (tmp_path / "model" / "model.pt").stat().st_size > 0
