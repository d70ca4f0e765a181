"""A small hub for searches: it keeps the runs that are submitted, and the test says what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.azureml.stub_hub import StubHub, run_json

SEARCH_ID = "c" * 32


class SearchHub(StubHub):
    """`rows`: all runs in the order of their submission, the search first; `scores`: what each run has
    logged, by its number; `state`: of new runs; `refused`: the status of the answer to a submission, 0 =
    none."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = [run_json(id=SEARCH_ID, number=10, kind="external", state="Running", url="")]
        self.scores: dict[int, list[float]] = {}
        self.state = "Completed"
        self.refused = 0
        self.by_key: dict[str, dict[str, Any]] = {}
        self.most_active = 0

    @property
    def search(self) -> dict[str, Any]:
        return self.rows[0]

    @property
    def children(self) -> list[dict[str, Any]]:
        return self.rows[1:]

    def set_states(self, state: str) -> None:
        for row in self.children:
            row["state"] = state

    def answer(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        status, answer = super().answer(method, path, query, body)
        data: Any = self.requests[-1][1] if method == "POST" and self.requests else None
        if self.refuse:
            return status, answer
        parts = path.strip("/").split("/")
        if path == "/api/v1/runs/":
            return self._submit(data) if method == "POST" else (200, {"results": self.children, "next": None})
        if path.startswith("/api/v1/runs/") and parts[3] != "preview":
            row = next(row for row in self.rows if row["id"] == parts[3])
            if parts[-1] == "cancel":
                row["state"] = "Canceled"
            return 200, row
        if path == "/api/2.0/mlflow/runs/log-batch":
            row = next(row for row in self.rows if row["id"] == data["run_id"])
            row["tags"].update({tag["key"]: tag["value"] for tag in data["tags"]})
        if path == "/api/2.0/mlflow/runs/create":
            self.search["tags"] = {tag["key"]: tag["value"] for tag in data["tags"]}
        if path == "/api/2.0/mlflow/runs/update":
            words = {"FINISHED": "Completed", "FAILED": "Failed", "KILLED": "Canceled", "RUNNING": "Running"}
            self.search["state"] = words[data["status"]]
        if path == "/api/2.0/mlflow/experiments/get-by-name":
            return 200, {"experiment": {"experiment_id": "3"}}
        if path.startswith("/api/2.0/mlflow/metrics/get-history"):
            return 200, {"metrics": self._points(query)}
        return status, answer

    def _submit(self, spec: Any) -> tuple[int, Any]:
        if self.refused:
            return self.refused, {"detail": "The disk quota is used up."}
        if self.keys[-1] not in self.by_key:
            number = len(self.rows) + 10
            row = run_json(id=f"{number:032x}", number=number, state=self.state, tags=dict(spec["tags"]))
            self.by_key[self.keys[-1]] = row
            self.rows.append(row)
        active = sum(row["state"] not in {"Completed", "Failed", "Canceled"} for row in self.children)
        self.most_active = max(self.most_active, active)
        return 201, self.by_key[self.keys[-1]]

    def _points(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        return [
            {"run_id": row["id"], "timestamp": index, "step": index, "value": value}
            for row in self.children
            if row["id"] in query["run_id"].split(",")
            for index, value in enumerate(self.scores.get(row["number"], []))
        ]
