"""A GPU that breaks: no run gets it until it is well again, on a real hub with a real agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator import Scenario, environment, xid
from simulator.models import h100
from tests.hub import Hub, eventually
from tests.journeys.runs import Runs

pytestmark = pytest.mark.slow
WAITING = "import time; print('at work', flush=True); time.sleep(3600)"
ONE_GPU: dict[str, Any] = {"resources": {"gpus_per_node": 1}}
PATIENCE_S = 120


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario([h100("health 0"), h100("health 1")])


@pytest.fixture
def runs(tmp_path: Path, scenario: Scenario) -> Iterator[Runs]:
    path = tmp_path / "scenario"
    scenario.write(path)
    hub = Hub(tmp_path / "data", ALERT_HOLD_SECONDS="2", **environment(path))
    try:
        hub.start()
        found = Runs(hub)
        eventually(lambda: len(gpus(found)) == 2, 60, "the node tells of its GPUs")
        yield found
    finally:
        try:
            hub.cancel_all()
        finally:
            hub.stop()


def gpus(runs: Runs) -> list[dict[str, Any]]:
    (node,) = runs.get("/nodes/")
    return list(node["gpus"])


def cluster(runs: Runs) -> dict[str, Any]:
    (found,) = runs.get("/clusters/")
    return dict(found)


def gpus_of(runs: Runs, run: str) -> list[str]:
    return [uuid for member in runs.members(run) for uuid in member["gpus"]]


def test_no_run_gets_a_broken_gpu_until_it_is_well_again(
    runs: Runs, scenario: Scenario, tmp_path: Path
) -> None:
    path = tmp_path / "scenario"
    broken, healthy = scenario.gpus
    broken.events.append(xid(48))
    scenario.write(path)
    eventually(lambda: gpus(runs)[0]["fault"] == "XID 48", PATIENCE_S, "the alert makes the GPU unhealthy")
    assert (cluster(runs)["gpus_free"], cluster(runs)["gpus_unhealthy"]) == (1, 1)

    first = runs.script(WAITING, **ONE_GPU)
    assert runs.until(first, "Running", seconds=PATIENCE_S)["state"] == "Running"
    assert gpus_of(runs, first) == [healthy.uuid]

    second = runs.script(WAITING, **ONE_GPU)
    number = runs.detail(first)["number"]
    reason = f"has 1 GPU free but unhealthy: XID 48; the other is held by run {number}."
    eventually(lambda: reason in runs.detail(second)["sentence"], PATIENCE_S, "the reason names the fault")
    (alert,) = runs.get("/alerts/?state=firing")["results"]
    assert alert["kind"] == "gpu_xid"
    for verb, body in (("acknowledge", {}), ("snooze", {"for": "1h"})):
        answer = runs.client.post(f"/api/v1/alerts/{alert['id']}/{verb}/", json=body)
        assert answer.status_code == 200, answer.text
    assert runs.detail(second)["state"] == "Queued"

    # A reset: the GPU goes, and comes back.
    broken.removed = True
    scenario.write(path)
    eventually(lambda: gpus(runs)[0]["state"] == "lost", PATIENCE_S, "it is away")
    broken.removed = False
    scenario.write(path)
    eventually(lambda: gpus(runs)[0]["fault"] == "", PATIENCE_S, "the alerts clear")
    assert runs.until(second, "Running", seconds=PATIENCE_S)["state"] == "Running"
    assert gpus_of(runs, second) == [broken.uuid]
    assert runs.detail(first)["state"] == "Running"
