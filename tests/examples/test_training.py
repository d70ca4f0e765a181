"""The built-in examples train for real on one machine: right world size, a log for each rank, a model in the
end."""

from __future__ import annotations

import pytest

from tests.examples.table import ONE_MACHINE, Training
from tests.journeys.runs import Runs

pytestmark = [pytest.mark.slow, pytest.mark.frameworks, pytest.mark.mpi]
TRAINING_S = 180


@pytest.mark.parametrize("training", ONE_MACHINE, ids=lambda training: training.example)
def test_trains(runs: Runs, training: Training, frameworks_python: str) -> None:
    run = runs.submit(training.spec(frameworks_python))
    ended = runs.ended(run, TRAINING_S)
    logs = {
        name: runs.log(run, name).decode(errors="replace")
        for name in runs.logs(run)
        if name.startswith("70_")
    }
    assert ended["state"] == "Completed", (ended["sentence"], logs)
    assert sorted(logs) == sorted(training.logs)
    for name, words in training.logs.items():
        assert [word for word in words if word not in logs[name]] == [], logs[name]
    assert any(path.endswith(training.output) for path in runs.outputs(run)), runs.outputs(run)
