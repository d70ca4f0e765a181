"""The built-in examples train for real on one machine: right world size, a log for each rank, a model in the
end."""

from __future__ import annotations

import pytest

from tests.examples.checks import check_trained
from tests.examples.table import CURATED, ONE_MACHINE, Training
from tests.journeys.runs import ENVIRONMENT_BUILD_S, Runs

pytestmark = [pytest.mark.slow, pytest.mark.frameworks, pytest.mark.mpi]
TRAINING_S = 180


@pytest.mark.parametrize("training", ONE_MACHINE, ids=lambda training: training.example)
def test_trains(runs: Runs, training: Training, frameworks_python: str) -> None:
    run = runs.submit(training.spec(frameworks_python))
    check_trained(runs, run, training, TRAINING_S)


@pytest.mark.parametrize("training", CURATED, ids=lambda training: training.example)
def test_trains_in_its_curated_environment(runs: Runs, training: Training, frameworks_python: str) -> None:
    run = runs.submit(training.curated_spec(frameworks_python))
    check_trained(runs, run, training, ENVIRONMENT_BUILD_S)
    name = training.curated_spec(frameworks_python)["environment"]["name"]
    version = runs.get(f"/environments/{name}/versions/1/")
    installed = {package["name"] for package in runs.get(f"/runs/{run}/packages/")["nodes"][0]["packages"]}
    assert version["state"] == "locked"
    assert f"{training.example.partition('-')[0]}==" in version["lock"]
    assert training.example.partition("-")[0] in installed
