"""Runs of a real hub, through its API alone."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import httpx

from tests.hub import PROJECT, Hub, eventually

FINAL = ("Completed", "Failed", "Canceled")
ENVIRONMENT_BUILD_S = 600


def example_spec(name: str) -> dict[str, Any]:
    """The RunSpec JSON of a built-in example."""
    spec: dict[str, Any] = json.loads((PROJECT / "examples" / name / "example.json").read_text())["spec"]
    return spec


class Runs:
    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.client = hub.client()

    def get(self, path: str) -> Any:
        answer = self.client.get(f"/api/v1{path}")
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    def snapshot(self, **files: str) -> str:
        """`name_py` stands for name.py. The id of a snapshot of these files."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, text in files.items():
                archive.writestr(name.replace("_py", ".py"), text)
        answer = self.client.post(
            "/api/v1/snapshots/", files={"file": ("source.zip", buffer.getvalue(), "application/zip")}
        )
        assert answer.status_code == httpx.codes.CREATED, answer.text
        return str(answer.json()["id"])

    def submit(self, spec: dict[str, Any]) -> str:
        answer = self.client.post("/api/v1/runs/", json=spec)
        assert answer.status_code == httpx.codes.CREATED, answer.text
        return str(answer.json()["id"])

    def script(self, text: str, **spec: Any) -> str:
        """Submit one script in the node's own interpreter."""
        return self.submit(self.script_spec(text, **spec))

    def script_spec(self, text: str, **spec: Any) -> dict[str, Any]:
        source = {"type": "snapshot", "id": self.snapshot(main_py=text)}
        return {"source": source, "script": "main.py", "experiment": "journeys", **spec}

    def detail(self, run: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/runs/{run}/")
        return found

    def until(self, run: str, *states: str, seconds: float = 60) -> dict[str, Any]:
        """Wait for one of `states`, or for the end."""

        def reached() -> dict[str, Any] | None:
            found = self.detail(run)
            return found if found["state"] in (*states, *FINAL) else None

        found = eventually(reached, seconds, f"run {run} reaches {states or 'its end'}")
        assert found is not None
        return found

    def ended(self, run: str, seconds: float = 60) -> dict[str, Any]:
        return self.until(run, seconds=seconds)

    def log(self, run: str, name: str = "70_driver_log.txt") -> bytes:
        answer = self.client.get(f"/api/v1/runs/{run}/logs/{name}")
        return answer.content if answer.status_code == httpx.codes.OK else b""

    def logs(self, run: str) -> list[str]:
        return [entry["name"] for entry in self.get(f"/runs/{run}/logs/")["logs"]]

    def says(self, run: str, text: bytes, name: str = "70_driver_log.txt", seconds: float = 30) -> bytes:
        """Wait until the log holds `text`; all of the log by then."""

        def heard() -> bytes | None:
            found = self.log(run, name)
            return found if text in found else None

        return eventually(heard, seconds, f"{text!r} in {name}") or b""

    def outputs(self, run: str) -> list[str]:
        return [entry["path"] for entry in self.get(f"/runs/{run}/outputs/")["outputs"]]

    def members(self, run: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"/runs/{run}/members/")
        return found

    def file_on_node(self, run: str, name: str = "70_driver_log.txt") -> Path:
        """The rank's own log file, where the node wrote it."""
        hubs = self.hub.data_dir / "runs"
        found = [
            path for path in self.hub.data_dir.rglob(name) if run in str(path) and hubs not in path.parents
        ]
        assert len(found) == 1, found
        return found[0]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def alive(pid: int) -> bool:
    """A process that runs; what is dead but not yet reaped does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
