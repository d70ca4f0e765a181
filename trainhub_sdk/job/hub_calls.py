"""The calls of MLflow's protocol that logging needs, without MLflow's client."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from trainhub_sdk.api_connection import OVERLOADED, ApiConnection
from trainhub_sdk.errors import HubRefused, HubUnreachable, NoProfile
from trainhub_sdk.job.sender import Item, Metric

_ROOT = "/api/2.0/mlflow"
PAGE = 20_000
# Of several histories in one answer.
BULK_RUNS, BULK_POINTS = 100, 25_000
Json = Any


class Unreachable(Exception):
    """The hub may take it later."""


class Refused(Exception):
    """`is_about_content`: something in the request is wrong, else who sends it."""

    def __init__(self, message: str, *, is_about_content: bool) -> None:
        super().__init__(message)
        self.is_about_content = is_about_content


class HubCalls:
    """Calls to one hub in the name of a token, that of a job or of a person."""

    def __init__(self, api: ApiConnection) -> None:
        self.api = api

    @classmethod
    def of_job(cls, environ: Mapping[str, str]) -> HubCalls:
        """Returns calls with the token of this process's job. Raises Refused if its variables are wrong."""
        url, token = environ["TRAINHUB_URL"], environ.get("TRAINHUB_TOKEN", "")
        try:
            # What fails is repeated by the sender, which has the patience for it.
            return cls(ApiConnection(url, token, environ.get("TRAINHUB_CA_FILE", ""), retry_s=0))
        except NoProfile as error:
            raise Refused(str(error), is_about_content=False) from error

    def log_batch(self, run_id: str, batch: Iterable[Item], timeout_s: float) -> None:
        """Raises Unreachable and Refused."""
        metrics: list[Json] = []
        tags: list[Json] = []
        for item in batch:
            (metrics if isinstance(item, Metric) else tags).append(item._asdict())
        for metric in metrics:
            metric["value"] = _spelled(metric["value"])
        body = json.dumps({"run_id": run_id, "metrics": metrics, "tags": tags}).encode()
        headers = {"Content-Type": "application/json"}
        try:
            path = f"{_ROOT}/runs/log-batch"
            self.api.open("POST", path, body=body, headers=headers, timeout=timeout_s).read()
        except HubUnreachable as error:
            raise Unreachable(str(error)) from error
        except HubRefused as error:
            if error.status in OVERLOADED or error.status >= 500:
                raise Unreachable(str(error)) from error
            message = str(error.body.get("message") or error)
            raise Refused(message, is_about_content=error.status in (400, 413)) from error

    def run(self, run_id: str) -> Json:
        """Returns MLflow's description of a run. Raises TrainHubError."""
        return self.api.get(f"{_ROOT}/runs/get", run_id=run_id)["run"]

    def create_run(self, experiment_id: str, name: str, tags: Mapping[str, str]) -> Json:
        body = {
            "experiment_id": experiment_id,
            "run_name": name,
            "start_time": int(time.time() * 1000),
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        }
        return self.api.call("POST", f"{_ROOT}/runs/create", body)["run"]

    def end_run(self, run_id: str, status: str) -> None:
        body = {"run_id": run_id, "status": status, "end_time": int(time.time() * 1000)}
        self.api.call("POST", f"{_ROOT}/runs/update", body)

    def children(self, experiment_id: str, run_id: str) -> list[Json]:
        body = {"experiment_ids": [experiment_id], "filter": f"tags.mlflow.parentRunId = '{run_id}'"}
        return list(self.api.call("POST", f"{_ROOT}/runs/search", body).get("runs") or [])

    def delete_tag(self, run_id: str, key: str) -> None:
        self.api.call("POST", f"{_ROOT}/runs/delete-tag", {"run_id": run_id, "key": key})

    def history(self, run_id: str, key: str) -> list[float]:
        """Returns the values of a metric in the order in which they were logged."""
        points: list[Json] = []
        token = None
        while True:
            query = {"run_id": run_id, "metric_key": key, "max_results": PAGE, "page_token": token}
            page = self.api.get(f"{_ROOT}/metrics/get-history", **query)
            points += page.get("metrics") or ()
            token = page.get("next_page_token")
            if not token:
                return _values_in_order(points)

    def histories(self, run_ids: Sequence[str], key: str) -> dict[str, list[float]]:
        """Returns the same of several runs by their ids, with few requests."""
        if len(run_ids) < 2:
            return {run_id: self.history(run_id, key) for run_id in run_ids}
        points: list[Json] = []
        if len(run_ids) <= BULK_RUNS:
            query = {"run_id": list(run_ids), "metric_key": key, "max_results": BULK_POINTS}
            points = self.api.get(f"{_ROOT}/metrics/get-history-bulk", **query).get("metrics") or []
        if len(run_ids) > BULK_RUNS or len(points) >= BULK_POINTS:
            middle = len(run_ids) // 2
            return {**self.histories(run_ids[:middle], key), **self.histories(run_ids[middle:], key)}
        by_run: dict[str, list[Json]] = {run_id: [] for run_id in run_ids}
        for point in points:
            by_run[point["run_id"]].append(point)
        return {run_id: _values_in_order(own) for run_id, own in by_run.items()}

    def describe(self, run_id: str, tags: Mapping[str, str], params: Mapping[str, str] | None = None) -> None:
        """Sets tags and params at once. Repeating this has no effect. Raises TrainHubError."""
        body = {
            "run_id": run_id,
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
            "params": [{"key": key, "value": value} for key, value in (params or {}).items()],
        }
        self.api.call("POST", f"{_ROOT}/runs/log-batch", body)

    def put_file(self, run_id: str, path: str, content: bytes | IO[bytes], size: int) -> None:
        """Stores a file of the run. Raises TrainHubError."""
        query = {"run_uuid": run_id, "path": path}
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        address = "/ajax-api/2.0/mlflow/upload-artifact"
        answer = self.api.open("POST", address, query=query, body=content, headers=headers, timeout=300)
        answer.read()

    def read_file(self, run_id: str, path: str) -> bytes:
        return self.api.open("GET", "/get-artifact", query={"run_uuid": run_id, "path": path}).read()

    def files(self, run_id: str, folder: str = "") -> Iterator[str]:
        """Yields the paths of all files that the hub has of a run."""
        page = self.api.call(
            "GET", f"{_ROOT}/artifacts/list", query={"run_id": run_id, "path": folder or None}
        )
        for file in page.get("files") or ():
            if file["is_dir"]:
                yield from self.files(run_id, file["path"])
            else:
                yield str(file["path"])

    def register(
        self, name: str, run_id: str, source: str, description: str, tags: Mapping[str, str]
    ) -> Json:
        """Registers files of a run as the next version of a model, which is made if there is none."""
        try:
            self.api.call("POST", f"{_ROOT}/registered-models/create", {"name": name})
        except HubRefused as error:
            if error.body.get("error_code") != "RESOURCE_ALREADY_EXISTS":
                raise
        body = {
            "name": name,
            "source": source,
            "run_id": run_id,
            "description": description,
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        }
        return self.api.call("POST", f"{_ROOT}/model-versions/create", body)["model_version"]


def _values_in_order(points: Iterable[Json]) -> list[float]:
    values: dict[tuple[int, int, str], float] = {}
    for point in points:
        # A batch that was sent twice because its answer was lost has the same points again.
        value = point["value"]
        values[(int(point["timestamp"]), int(point.get("step") or 0), str(value))] = float(value)
    return [values[key] for key in sorted(values, key=lambda point: point[:2])]


def _spelled(value: float) -> float | str:
    """JSON has no NaN and no infinities; MLflow's protocol spells them."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
