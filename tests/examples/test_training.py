"""The built-in examples train for real on one machine: right world size, a log for each rank, a model in the
end."""

from __future__ import annotations

import pytest

from tests.examples.checks import check_trained
from tests.examples.table import ONE_MACHINE, Training
from tests.journeys.runs import Runs

pytestmark = [pytest.mark.slow, pytest.mark.frameworks, pytest.mark.mpi]
TRAINING_S = 180


@pytest.mark.parametrize("training", ONE_MACHINE, ids=lambda training: training.example)
def test_trains(runs: Runs, training: Training) -> None:
    run = runs.submit(training.spec())
    check_trained(runs, run, training, TRAINING_S)
