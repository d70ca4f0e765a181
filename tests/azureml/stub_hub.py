"""A small hub over real HTTP: two clusters, a few environments, and what jobs log to it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.azureml.stub_data import StubData

RUN = "0123456789abcdef0123456789abcdef"
GPU = {"uuid": "GPU-0", "index": 0, "name": "V100", "state": "ok", "mig": False}


def node(name: str, cluster: str, gpus: int) -> dict[str, Any]:
    return {"name": name, "cluster": cluster, "status": "ready", "address": "10.0.0.1", "gpus": [GPU] * gpus}


def environment(name: str, version: str = "1", kind: str = "venv", **others: Any) -> dict[str, Any]:
    return {"name": name, "version": version, "kind": kind, "requirements": [], "notice": "", **others}


def run_json(**others: Any) -> dict[str, Any]:
    fields = {"id": RUN, "number": 7, "display_name": "x", "experiment": "e", "kind": "job", "tags": {}}
    return {**fields, "state": "Queued", "findings": [], "spec": None, **others}


class StubHub:
    """`refuse`: the status of all answers, 0 = it works; `requests`: of all that change something, path and
    body; `batches`: of all log-batch calls; `files`: uploaded ones by path; `keys`: of submissions."""

    def __init__(self) -> None:
        self.refuse = 0
        self.clusters = [{"name": "gpu-cluster"}, {"name": "cpu"}]
        self.nodes = [node("a", "gpu-cluster", 4), node("b", "gpu-cluster", 4), node("c", "cpu", 0)]
        self.environments = [
            environment("TrainHub-PyTorch-2.13", requirements=["torch==2.13.0", "numpy"]),
            environment("TrainHub-TensorFlow-2.21", requirements=["tensorflow==2.21.*"]),
            environment("TrainHub-TensorFlow-2.19", notice="It is old."),
            environment("system", "3.11.7", "system"),
            environment("system", "3.8.18", "system"),
        ]
        self.requests: list[tuple[str, Any]] = []
        self.batches: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.findings: list[dict[str, Any]] = []
        self.bad_keys: set[str] = set()
        self.run = run_json()
        self.versions: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.data = StubData()
        self.url = ""

    @property
    def metrics(self) -> list[tuple[str, Any, int]]:
        return [(m["key"], m["value"], m["step"]) for batch in self.batches for m in batch["metrics"]]

    @property
    def tags(self) -> dict[str, str]:
        return {tag["key"]: tag["value"] for batch in self.batches for tag in batch["tags"]}

    def bodies(self, path: str) -> list[Any]:
        return [body for requested, body in self.requests if requested == path]

    def answer(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        if self.refuse:
            return self.refuse, {"message": "The hub is away.", "detail": "The hub is away."}
        data = json.loads(body) if body[:1] == b"{" and "/upload/files/" not in path else None
        if method in ("POST", "PUT"):
            self.requests.append((path, data))
        handlers: dict[str, Callable[[], Any]] = {
            "/api/v1/me/": lambda: {"user": "ada", "workspace": "vision"},
            "/api/v1/clusters/": lambda: self.clusters,
            "/api/v1/nodes/": lambda: self.nodes,
            "/api/v1/snapshots/": lambda: {"id": "a" * 64},
            "/api/v1/runs/preview/": lambda: {
                "ok": True,
                "plan": None,
                "printed": "the plan",
                "findings": self.findings,
            },
            "/api/v1/runs/": lambda: self.run,
            f"/api/v1/runs/{RUN}/": lambda: self.run,
            "/api/2.0/mlflow/runs/get": self._mlflow_run,
            "/api/2.0/mlflow/metrics/get-history": lambda: self._history(query["metric_key"]),
            "/api/2.0/mlflow/experiments/create": lambda: {"experiment_id": "3"},
            "/api/2.0/mlflow/runs/create": lambda: {"run": {"info": {"run_id": "c" * 32}}},
            "/api/2.0/mlflow/runs/update": lambda: {},
        }
        if path.startswith(("/api/v1/datastores/", "/api/v1/datasets/", "/api/v1/secrets/")):
            return self.data.answer(method, path, query, body)
        if path == "/api/2.0/mlflow/runs/log-batch":
            return self._log_batch(data)
        if path == "/ajax-api/2.0/mlflow/upload-artifact":
            self.files[query["path"]] = body
            return 200, {}
        if path == "/get-artifact":
            return (200, self.files[query["path"]]) if query["path"] in self.files else (404, {})
        if path.startswith("/api/v1/environments/"):
            return self._environments(method, path, data)
        return (200, handlers[path]()) if path in handlers else (404, {"detail": f"no {path}"})

    def _log_batch(self, data: Any) -> tuple[int, Any]:
        data = {"metrics": [], "tags": [], **data}
        keys = {item["key"] for item in [*data["metrics"], *data["tags"]]}
        if keys & self.bad_keys:
            return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "a wrong key"}
        self.batches.append(data)
        return 200, {}

    def _environments(self, method: str, path: str, data: Any) -> tuple[int, Any]:
        if path == "/api/v1/environments/" and method == "GET":
            return 200, self.environments
        if method == "POST":
            number = str(len(self.versions) + 1)
            source = data.get("conda") or data.get("dockerfile") or ""
            version = {"version": number, "state": "locked", "python": "3.11", "source": source, **data}
            self.versions.append(version)
            return 201, version
        parts = path.strip("/").split("/")[3:]
        rows = [row for row in self.versions if row["name"] == parts[0]]
        if not rows:
            return 404, {"detail": "There is no such environment."}
        return 200, {"name": parts[0], "versions": rows} if len(parts) == 1 else rows[-1]

    def _mlflow_run(self) -> dict[str, Any]:
        last = {key: {"key": key, "value": value} for key, value, _ in self.metrics}
        tags = [{"key": key, "value": value} for key, value in self.tags.items()]
        info = {"run_id": RUN, "experiment_id": "3", "status": "RUNNING"}
        return {"run": {"info": info, "data": {"metrics": list(last.values()), "tags": tags}}}

    def _history(self, key: str) -> dict[str, Any]:
        points = [m for batch in self.batches for m in batch["metrics"] if m["key"] == key]
        return {"metrics": points}


@contextmanager
def serving(own: StubHub | None = None) -> Iterator[StubHub]:
    """`own`: the hub to serve, by default a new one."""
    hub = own or StubHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            query = {name: ",".join(values) for name, values in parse_qs(parts.query).items()}
            if "Idempotency-Key" in self.headers:
                hub.keys.append(self.headers["Idempotency-Key"])
            status, answer = hub.answer(self.command, parts.path, query, body)
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        # The names are those of BaseHTTPRequestHandler.
        do_GET = do_POST = do_PUT = do_PATCH = _handle  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
