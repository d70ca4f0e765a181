"""The bytes that MLflow's client sends, sent as fast as they are answered: what a server takes without what
its client takes."""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

API = "/api/2.0/mlflow"
SEARCHED = "metrics.acc > 0.5 and params.opt = 'adam'"
ORDER = ["metrics.loss ASC"]
FIRST_MS = 1_700_000_000_000


class Wire:
    """One connection, kept open, that acknowledges at once (TCP_QUICKACK)."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
        self._connection.connect()
        self._headers = {
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        self._connection.request(method, path, body, self._headers)
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:300]!r}")
        return data

    def call(self, path: str, body: dict[str, Any]) -> Any:
        return json.loads(self.ask("POST", f"{API}/{path}", json.dumps(body).encode()))

    def run(self) -> str:
        name = f"wire-{time.time_ns()}"
        experiment = self.call("experiments/create", {"name": name})["experiment_id"]
        created = self.call("runs/create", {"experiment_id": experiment, "start_time": FIRST_MS})
        return str(created["run"]["info"]["run_id"])

    def single(self, count: int) -> float:
        """Calls a second."""
        run = self.run()
        point = {"run_id": run, "run_uuid": run, "key": "loss", "value": 0.5, "timestamp": FIRST_MS}
        bodies = [json.dumps({**point, "step": step}).encode() for step in range(count)]
        return count / self._took("runs/log-metric", bodies)

    def batch(self, count: int, keys: int) -> float:
        """Metrics a second, 1,000 in each call."""
        run = self.run()
        bodies = []
        for number in range(count):
            steps = range(number * (1000 // keys), (number + 1) * (1000 // keys))
            points = [
                {"key": f"m{key}", "value": step / 7, "timestamp": FIRST_MS + step, "step": step}
                for step in steps
                for key in range(keys)
            ]
            bodies.append(json.dumps({"run_id": run, "metrics": points}).encode())
        return 1000 * count / self._took("runs/log-batch", bodies)

    def search(self, experiment: str, rounds: int) -> tuple[float, int]:
        """Median seconds, and how many of at most 100 runs were found."""
        stored = json.loads(self.ask("GET", f"{API}/experiments/get-by-name?experiment_name={experiment}"))[
            "experiment"
        ]
        asked = {
            "experiment_ids": [stored["experiment_id"]],
            "filter": SEARCHED,
            "order_by": ORDER,
            "max_results": 100,
        }
        body, took, answer = json.dumps(asked).encode(), [], b"{}"
        for _ in range(rounds):
            started = time.perf_counter()
            answer = self.ask("POST", f"{API}/runs/search", body)
            took.append(time.perf_counter() - started)
        return statistics.median(took), len(json.loads(answer).get("runs", ()))

    def _took(self, path: str, bodies: Iterable[bytes]) -> float:
        started = time.perf_counter()
        for body in bodies:
            self.ask("POST", f"{API}/{path}", body)
        return time.perf_counter() - started
