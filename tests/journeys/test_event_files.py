"""TensorBoard's event files of a run: the node sends them, the worker reads them, the page hears of it, no
log shows them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.hub import eventually
from tests.journeys.runs import Runs
from tests.runs import node_folder
from tests.tracking.events.files import NAME, curve, event_file, new

pytestmark = pytest.mark.slow
SCRIPT = """
import base64, os, time

data = base64.b64decode(DATA)
folder = os.path.join(PLACE, "train")
os.makedirs(folder)
with open(os.path.join(folder, NAME), "wb", buffering=0) as file:
    file.write(data[: len(data) // 2])
    while not os.path.exists("go"):
        time.sleep(0.02)
    file.write(data[len(data) // 2 :])
"""


def steps(runs: Runs, run: str) -> list[int]:
    asked = {"run_id": run, "metric_key": "train/epoch_loss"}
    told = runs.client.get("/api/2.0/mlflow/metrics/get-history", params=asked).raise_for_status().json()
    return [point["step"] for point in told.get("metrics", ())]


@pytest.mark.parametrize("place", ["logs/fit", "outputs/model/runs/Nov21_10-00-00_gpu-1"])
def test_curves_grow_while_the_run_goes_on(runs: Runs, place: str) -> None:
    data = base64.b64encode(event_file(*curve("epoch_loss", 40, kind=new))).decode()
    run = runs.script(f"DATA, PLACE, NAME = {data!r}, {place!r}, {NAME!r}\n{SCRIPT}")
    runs.until(run, "Running")
    address = f"{runs.hub.url.replace('http', 'ws', 1)}/ws/runs/{run}/"
    with connect(address, additional_headers={"Authorization": f"Bearer {runs.hub.owner_token()}"}) as socket:
        half = eventually(lambda: steps(runs, run), 20, "the first half is read")
        (node_folder(runs.hub, run) / "work" / "go").touch()
        messages: list[dict[str, Any]] = []
        while not any(message["type"] == "metrics.added" for message in messages):
            messages.append(json.loads(socket.recv(timeout=30)))

    assert (half[0], len(half) < 40) == (0, True)
    assert messages[-1] == {"type": "metrics.added", "run": run, "keys": ["train/epoch_loss"]}
    assert runs.ended(run)["state"] == "Completed"
    assert eventually(lambda: len(steps(runs, run)) == 40, 20, "the rest is read")
    assert not any("tfevents" in name for name in runs.logs(run))
    assert any(path.endswith(NAME) for path in runs.outputs(run))
