"""The process that runs a search stays until that is over, and Ctrl-C ends it with a sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.azureml.hyperdrive.search_hub import SEARCH_ID, SearchHub
from tests.hub import PROJECT, eventually
from trainhub_azureml.runner import NAMES

SCRIPT = """
from azureml.core import Experiment, ScriptRunConfig, Workspace
from azureml.train.hyperdrive import GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice
config = HyperDriveConfig(
    GridParameterSampling({'--lr': choice(1, 2)}), 'accuracy', PrimaryMetricGoal.MAXIMIZE, 4,
    run_config=ScriptRunConfig('.', 'train.py', compute_target='gpu-cluster'))
run = Experiment(Workspace('s', 'g', 'team'), 'e').submit(config)
print('submitted', run.id, flush=True)
"""


@pytest.fixture
def start_script(search_hub: SearchHub, own_folder: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    processes = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONPATH": f"{NAMES}:{PROJECT}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_a_process_whose_script_has_ended_stays_until_the_search_is_over(
    search_hub: SearchHub, start_script: Callable[[], subprocess.Popen[str]]
) -> None:
    search_hub.state = "Running"
    process = start_script()
    assert process.stdout is not None
    assert process.stdout.readline() == f"submitted {SEARCH_ID}\n"
    eventually(lambda: len(search_hub.children) == 2)
    assert process.poll() is None
    search_hub.set_states("Completed")
    errors = process.communicate(timeout=30)[1]
    assert (process.returncode, search_hub.search["state"]) == (0, "Completed")
    assert "this process runs the search 10, and stays until that is over" in errors


def test_ctrl_c_ends_the_search_and_says_what_becomes_of_its_runs(
    search_hub: SearchHub, start_script: Callable[[], subprocess.Popen[str]]
) -> None:
    search_hub.state = "Running"
    process = start_script()
    assert process.stderr is not None
    eventually(lambda: len(search_hub.children) == 2)
    while "stays until that is over" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=30)[1]
    sentence = (
        "The process that ran the search 10 was interrupted. Its runs go on; stop them by: "
        "trainhub stop 11 12"
    )
    assert f"TrainHub: {sentence}" in errors
    assert "Traceback" not in errors
    assert [row["state"] for row in search_hub.children] == ["Running", "Running"]
    assert (search_hub.search["state"], search_hub.search["tags"]["azureml.hyperdrive.reason"]) == (
        "Canceled",
        sentence,
    )
