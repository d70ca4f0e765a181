"""Transformers' own callback for Azure ML finds the names, and no value is logged twice."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.hub import PROJECT

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]
HIDE_MLFLOW = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.startswith("mlflow") else find(name, *rest)
"""
LOG = """
from transformers import TrainerControl, TrainerState
from transformers.integrations import AzureMLCallback, get_available_reporting_integrations
print(*get_available_reporting_integrations())
state, callback = TrainerState(), AzureMLCallback()
state.is_world_process_zero = True
callback.on_init_end(None, state, TrainerControl())
callback.on_log(None, state, TrainerControl(), logs={"loss": 0.5})
"""


def said(python: str, script: str) -> list[str]:
    # As the file trainhub_azureml.pth of an installed command line has it.
    path = f"{PROJECT / 'trainhub_azureml' / 'names'}:{PROJECT}"
    done = subprocess.run(
        [python, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_beside_mlflow_only_that_is_used(frameworks_python: str) -> None:
    assert "azure_ml" not in said(frameworks_python, LOG)[0].split()


def test_without_mlflow_its_callback_logs_by_the_names(frameworks_python: str) -> None:
    integrations, *logged = said(frameworks_python, HIDE_MLFLOW + LOG)
    assert "azure_ml" in integrations.split()
    assert logged == ["loss: 0.5"], "outside of a job it is printed"
