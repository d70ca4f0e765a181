"""The frameworks train on two hosts: right world size, each rank's log apart and whole, their metrics and
checkpoints in the run, a model in the end."""

from __future__ import annotations

import pytest

from tests.examples.table import TWO_HOSTS, Training
from tests.hosts.bench import CLUSTER, Hosts
from tests.journeys.runs import sha256

pytestmark = [pytest.mark.hosts, pytest.mark.frameworks, pytest.mark.mpi, pytest.mark.slow]
TRAINING_S = 240
ELSEWHERE = {
    # Would be compiled for many minutes: tests/examples/test_every_curated.py does that.
    "horovod-digits",
    "horovod-tensorflow",
    # digits-torchrun starts in the same way, and transformers-tiny trains the same.
    "transformers-torchrun",
    # The older name of torchrun.
    "digits-launch",
    # tests/hosts/scheduling/test_checkpoints.py trains it, and resumes it.
    "deepspeed-digits",
    # tests/mlflow/test_frameworks.py trains it.
    "tf-keras-fit",
}
# These start as digits-torchrun or tf-multiworker do, or are trained by scheduling/test_checkpoints.py.
LONG = {"digits-ddp", "lightning-digits", "transformers-tiny", "tf-parameter-server"}
TRAININGS = [
    pytest.param(training, marks=pytest.mark.long if training.example in LONG else ())
    for training in TWO_HOSTS
    if training.example not in ELSEWHERE
]


@pytest.mark.parametrize("training", TRAININGS, ids=lambda training: training.example)
def test_trains(hosts: Hosts, training: Training) -> None:
    run = hosts.runs.submit(training.spec(CLUSTER))
    ended = hosts.runs.ended(run, TRAINING_S)
    result = [name for name in hosts.runs.logs(run) if name.startswith("70_")]
    logs = {name: hosts.runs.log(run, name).decode(errors="replace") for name in result}
    assert ended["state"] == "Completed", (ended["sentence"], logs)
    assert {member["node"] for member in ended["members"]} == {host.name for host in hosts.hosts}
    assert sorted(logs) == sorted(training.logs)
    for name, words in training.logs.items():
        assert [word for word in words if word not in logs[name]] == [], logs[name]
        assert sha256(hosts.runs.log(run, name)) == sha256(hosts.file_on_host(run, name).read_bytes())
    assert any(path.endswith(training.output) for path in hosts.runs.outputs(run)), hosts.runs.outputs(run)
    counts = {item["key"]: item["count"] for item in hosts.runs.get(f"/runs/{run}/metrics/")["metrics"]}
    assert training.metrics.items() <= counts.items(), counts
    logged = (
        hosts.runs.client.get("/api/2.0/mlflow/runs/get", params={"run_id": run}).raise_for_status().json()
    )
    params = {item["key"]: item["value"] for item in logged["run"]["data"].get("params", ())}
    assert training.params.items() <= params.items(), params
    children = hosts.runs.get(f"/runs/?parent={run}")["results"]
    assert [(child["kind"], child["state"]) for child in children] == (
        [("external", "Completed")] * training.child_runs
    )
    saved = {(row["name"], row["state"]) for row in hosts.runs.get(f"/runs/{run}/checkpoints/")}
    assert not training.checkpoint or (training.checkpoint, "complete") in saved
