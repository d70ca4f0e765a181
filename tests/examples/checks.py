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


def check_tracked(runs: Runs, run: str, training: Training) -> None:
    """Its metrics, parameters, child runs and checkpoint, after its end."""
    counts = {item["key"]: item["count"] for item in runs.get(f"/runs/{run}/metrics/")["metrics"]}
    assert training.metrics.items() <= counts.items(), counts
    answer = runs.client.get("/api/2.0/mlflow/runs/get", params={"run_id": run}).raise_for_status()
    params = {item["key"]: item["value"] for item in answer.json()["run"]["data"].get("params", ())}
    assert training.params.items() <= params.items(), params
    children = runs.get(f"/runs/?parent={run}")["results"]
    assert [(child["kind"], child["state"]) for child in children] == (
        [("external", "Completed")] * training.child_runs
    )
    saved = {(row["name"], row["state"]) for row in runs.get(f"/runs/{run}/checkpoints/")}
    assert not training.checkpoint or (training.checkpoint, "complete") in saved
