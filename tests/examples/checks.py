"""What every trained example must have left."""

from __future__ import annotations

from tests.examples.table import Training
from tests.journeys.runs import Runs


def check_trained(runs: Runs, run: str, training: Training, seconds: int) -> None:
    """Waits up to `seconds` for the end of the run."""
    ended = runs.ended(run, seconds)
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
