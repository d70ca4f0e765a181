"""What people do meanwhile: they submit runs of several sizes, again and again."""

from __future__ import annotations

import random
import threading
import time
import uuid

import httpx

from tests.chaos.world import ChaosHosts
from tests.hosts.bench import CLUSTER
from tests.hub import FINAL

MAX_ACTIVE = 10
# Every run comes through in the end, however often its nodes are lost.
RETRIES = 50
# Of one rank: when and where it lives, by a clock that all hosts share, and numbered lines of many lengths.
# The first rank leaves a file, too.
SCRIPT = """
import json, os, time
at = time.monotonic
if os.environ.get("RANK", "0") == "0":
    os.makedirs("outputs", exist_ok=True)
    with open("outputs/weights.bin", "w") as file:
        file.write(os.environ["TRAINHUB_RUN_ID"] * 500)
print("start", json.dumps({
    "at": at(), "rank": int(os.environ.get("RANK", "0")), "pid": os.getpid(),
    "gpus": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
}), flush=True)
deadline, number = at() + float(os.environ["LASTS_S"]), 0
while at() < deadline:
    number += 1
    print("line", number, f"{at():.3f}", "x" * (number * 37 % 300), flush=True)
    time.sleep(0.02)
print("counted to", number, f"{at():.3f}", flush=True)
"""


def output_of(run: str) -> bytes:
    """What its first rank writes to outputs/weights.bin."""
    return run.encode() * 500


class Load(threading.Thread):
    """`submitted`: the ids of all runs that the hub has accepted. `close` ends it; `failure` is what ended it
    before."""

    def __init__(self, hosts: ChaosHosts, seed: int) -> None:
        super().__init__(name="load", daemon=True)
        self._hosts = hosts
        self._random = random.Random(seed)  # noqa: S311 - repeatable
        self._closing = threading.Event()
        self.submitted: list[str] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            snapshot = self._hosts.runs.snapshot(main_py=SCRIPT)
            with self._hosts.hub.client() as client:
                while not self._closing.is_set():
                    if self._active(client) < MAX_ACTIVE:
                        self._submit(client, snapshot)
                    self._closing.wait(self._random.uniform(0.2, 1.5))
        except BaseException as error:
            self.failure = error

    def close(self) -> None:
        self._closing.set()
        self.join(180)
        assert not self.is_alive(), "the last submission has no end"
        if self.failure is not None:
            raise self.failure

    def _active(self, client: httpx.Client) -> int:
        """Runs that are not over; too many of them while the hub does not answer."""
        try:
            answer = client.get("/api/v1/runs/", params={"page_size": 100})
        except httpx.TransportError:
            return MAX_ACTIVE
        if answer.is_server_error:
            return MAX_ACTIVE
        return sum(run["state"] not in FINAL for run in answer.raise_for_status().json()["results"])

    def _submit(self, client: httpx.Client, snapshot: str) -> None:
        """Until the hub has answered: with one key, however often a request or its answer was lost. The last
        submission ends after `close`, so that no run is there of which nobody knows."""
        nodes = self._random.choice((1, 1, 1, 2))
        per_node = self._random.choice((1, 2, 4))
        spec = {
            "source": {"type": "snapshot", "id": snapshot},
            "script": "main.py",
            "experiment": "chaos",
            "distribution": {
                "type": "pytorch",
                "communication_backend": "gloo",
                "process_count": nodes * per_node,
                "node_count": nodes,
            },
            "resources": {"cluster": CLUSTER, "gpus_per_node": per_node},
            "environment_variables": {"LASTS_S": f"{self._random.uniform(1, 8):.1f}"},
            "limits": {"retries": RETRIES, "grace_s": 2},
        }
        key = {"Idempotency-Key": uuid.uuid4().hex}
        while True:
            try:
                answer = client.post("/api/v1/runs/", json=spec, headers=key)
            except httpx.TransportError:
                time.sleep(0.5)
                continue
            if answer.is_success:
                self.submitted.append(answer.json()["id"])
                return
            assert answer.is_server_error or answer.status_code == httpx.codes.TOO_MANY_REQUESTS, answer.text
            time.sleep(0.5)
