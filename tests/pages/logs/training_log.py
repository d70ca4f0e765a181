"""Logging to a real hub by MLflow's protocol, as its client does."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import httpx

from tests.hub import Hub

ROOT = "/api/2.0/mlflow"
MAX_AT_ONCE = 1000


@dataclass
class Logged:
    """A run from elsewhere. `began_ms`: steps are a second apart from there."""

    client: httpx.Client
    id: str
    number: int
    began_ms: int

    def log(self, key: str, values: Iterable[float | str], *, start: int = 0) -> None:
        """A value for each step, from `start` on."""
        points = [
            {"key": key, "value": value, "step": step, "timestamp": self.began_ms + step * 1000}
            for step, value in enumerate(values, start)
        ]
        for first in range(0, len(points), MAX_AT_ONCE):
            self._post("runs/log-batch", run_id=self.id, metrics=points[first : first + MAX_AT_ONCE])

    def put(self, path: str, content: bytes) -> None:
        """Logs a file."""
        info = self.client.get(f"{ROOT}/runs/get", params={"run_id": self.id}).raise_for_status().json()
        experiment = info["run"]["info"]["experiment_id"]
        root = f"/api/2.0/mlflow-artifacts/artifacts/{experiment}/{self.id}/artifacts"
        self.client.put(f"{root}/{quote(path)}", content=content).raise_for_status()

    def end(self) -> None:
        self._post("runs/update", run_id=self.id, status="FINISHED")

    def _post(self, call: str, **asked: object) -> None:
        self.client.post(f"{ROOT}/{call}", json=asked).raise_for_status()


def begin(hub: Hub, name: str, params: Mapping[str, str] | None = None, **tags: str) -> Logged:
    client = hub.client()
    began_ms = int(time.time() * 1000)
    made = (
        client.post(
            f"{ROOT}/runs/create",
            json={
                "experiment_id": "0",
                "run_name": name,
                "start_time": began_ms,
                "tags": [{"key": key.replace("__", "."), "value": value} for key, value in tags.items()],
            },
        )
        .raise_for_status()
        .json()["run"]["info"]
    )
    listed = [{"key": key, "value": value} for key, value in (params or {}).items()]
    client.post(
        f"{ROOT}/runs/log-batch", json={"run_id": made["run_id"], "params": listed}
    ).raise_for_status()
    number = int(client.get(f"/api/v1/runs/{made['run_id']}/").raise_for_status().json()["number"])
    return Logged(client, made["run_id"], number, began_ms)
