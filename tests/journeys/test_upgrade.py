"""An upgrade: this version takes over the data folder, the runs and the nodes of an earlier one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.hub import Hub, eventually
from tests.journeys.earlier import EarlierNode, unpack, wait_until_ready
from tests.journeys.runs import Runs, sha256

pytestmark = pytest.mark.slow
TRAINS = """
import os
os.makedirs("outputs", exist_ok=True)
open("outputs/model.bin", "wb").write(bytes(range(256)) * 64)
print("trained", flush=True)
"""
TRAINS_UNTIL_FILE = """
import os, pathlib, time
print("waits for", os.environ["GO_ON"], flush=True)
number = 0
while not pathlib.Path(os.environ["GO_ON"]).exists():
    number += 1
    print("line", number, flush=True)
    time.sleep(0.05)
print("went on after", number, flush=True)
"""
CLUSTER = "earlier-boxes"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """The earlier version, started by its own code. `hub.project` decides what the next start runs."""
    hub = Hub(tmp_path / "data", OPEN="1")
    hub.is_new = True
    hub.project = unpack(tmp_path / "earlier")
    try:
        yield hub.start()
    finally:
        hub.stop()


@pytest.fixture
def node(hub: Hub, tmp_path: Path) -> Iterator[EarlierNode]:
    node = EarlierNode(hub, hub.project, tmp_path / "node", "earlier-box")
    node.join(CLUSTER)
    node.start()
    try:
        wait_until_ready(node)
        yield node
    finally:
        hub.cancel_all()
        node.stop()


def upgrade(hub: Hub) -> None:
    assert hub.stop() == 0
    hub.project = Hub.project
    hub.start()


def test_runs_models_and_metrics_of_an_earlier_version_are_taken_over(
    hub: Hub, node: EarlierNode, tmp_path: Path
) -> None:
    before = Runs(hub)
    finished = before.script(TRAINS, tags={"team": "vision"})
    assert before.ended(finished)["state"] == "Completed"
    tracked, history = _log_metrics(before.client)
    certificate = _register(before.client, finished)
    go_on = tmp_path / "go-on"
    running = {
        name: before.script(
            TRAINS_UNTIL_FILE, environment_variables={"GO_ON": str(go_on)}, resources={"cluster": name}
        )
        for name in ("local", CLUSTER)
    }
    for run in running.values():
        before.says(run, b"line 10\n")
    old = {run: before.detail(run) for run in (finished, *running.values())}
    log = before.log(finished)

    upgrade(hub)

    runs = Runs(hub)
    taken = runs.detail(finished)
    changed = {key for key in old[finished] if taken.get(key) != old[finished][key]}
    assert not changed, {key: (old[finished][key], taken.get(key)) for key in changed}
    assert sha256(runs.log(finished)) == sha256(log)
    assert _metric_history(runs.client, tracked) == history
    assert _certificate(runs.client) == certificate
    file = runs.client.get("/api/v1/models/digits/versions/1/files/model.bin")
    assert file.content == bytes(range(256)) * 64
    # The agent of the earlier version goes on reporting, and takes new work.
    wait_until_ready(node)
    assert node.is_running()
    assert {runs.detail(run)["state"] for run in running.values()} == {"Running"}
    later = runs.script(TRAINS, resources={"cluster": CLUSTER})
    assert runs.ended(later)["state"] == "Completed"
    go_on.touch()
    for run in running.values():
        ended = runs.ended(run)
        assert ended["state"] == "Completed", ended["sentence"]
        lines = runs.log(run).splitlines()
        count = int(lines[-1].split()[-1])
        assert lines[1:-1] == [b"line %d" % number for number in range(1, count + 1)]
    # The new version signs with the same key: people who pinned it need not do it again.
    answer = runs.client.post("/api/v1/models/digits/versions/", json={"run": later, "path": "model.bin"})
    assert answer.status_code == httpx.codes.CREATED, answer.text
    second = eventually(lambda: _certificate(runs.client, 2), what="the second version has a certificate")
    assert second is not None
    assert _issuer(second) == _issuer(certificate)


def _log_metrics(client: httpx.Client) -> tuple[str, list[dict[str, object]]]:
    """Logs by MLflow's protocol. Returns the id of the run and the history of its metric."""

    def post(path: str, body: dict[str, object]) -> httpx.Response:
        return client.post(f"/api/2.0/mlflow/{path}", json=body).raise_for_status()

    experiment = post("experiments/create", {"name": "kept"}).json()["experiment_id"]
    run = post("runs/create", {"experiment_id": experiment}).json()["run"]["info"]["run_id"]
    for step in range(1, 4):
        metric = {
            "run_id": run,
            "key": "loss",
            "value": 1 / step,
            "step": step,
            "timestamp": 1_700_000_000_000,
        }
        post("runs/log-metric", metric)
    post("runs/update", {"run_id": run, "status": "FINISHED"})
    return run, _metric_history(client, run)


def _metric_history(client: httpx.Client, run: str) -> list[dict[str, object]]:
    query = {"run_id": run, "metric_key": "loss"}
    answer = client.get("/api/2.0/mlflow/metrics/get-history", params=query).raise_for_status().json()
    history: list[dict[str, object]] = answer["metrics"]
    assert len(history) == 3
    return history


def _register(client: httpx.Client, run: str) -> dict[str, bytes]:
    answer = client.post("/api/v1/models/digits/versions/", json={"run": run, "path": "model.bin"})
    assert answer.status_code == httpx.codes.CREATED, answer.text
    certificate = eventually(lambda: _certificate(client), what="the version has a certificate")
    assert certificate is not None
    return certificate


def _certificate(client: httpx.Client, version: int = 1) -> dict[str, bytes] | None:
    address = f"/api/v1/models/digits/versions/{version}"
    answers = {part: client.get(f"{address}/{part}") for part in ("certificate", "signature")}
    if any(answer.status_code != httpx.codes.OK for answer in answers.values()):
        return None
    return {part: answer.content for part, answer in answers.items()}


def _issuer(certificate: dict[str, bytes]) -> object:
    return json.loads(certificate["certificate"])["issuer"]
