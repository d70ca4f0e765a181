"""Runs on a real hub, over its API: submit a few files, wait for a state, read a log."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.hub import FINAL, Hub, eventually


def zipped(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def submit(hub: Hub, script: str, files: Mapping[str, str] | None = None, **spec: Any) -> str:
    """Submit `script` as train.py, with more files of its source, in the interpreter of the node; the run's
    id."""
    source_zip = zipped({"train.py": script, **(files or {})})
    with hub.client() as client:
        snapshot = client.post("/api/v1/snapshots/", files={"file": ("source.zip", source_zip)})
        assert snapshot.status_code in (200, 201), snapshot.text
        source = {"type": "snapshot", "id": snapshot.json()["id"]}
        answer = client.post(
            "/api/v1/runs/", json={"version": 1, "source": source, "script": "train.py", **spec}
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


def told(hub: Hub, run: str) -> dict[str, Any]:
    with hub.client() as client:
        return dict(client.get(f"/api/v1/runs/{run}/").raise_for_status().json())


def wait_for(hub: Hub, run: str, *states: str, seconds: float = 60) -> dict[str, Any]:
    """The run once it is in one of `states`, or in a final one."""

    def there() -> dict[str, Any] | None:
        facts = told(hub, run)
        return facts if facts["state"] in (*states, *FINAL) else None

    facts = eventually(there, seconds, f"run {run} is {' or '.join(states or FINAL)}")
    assert not states or facts["state"] in states, facts
    return facts


def log(hub: Hub, run: str, name: str = "70_driver_log.txt") -> bytes:
    with hub.client() as client:
        return client.get(f"/api/v1/runs/{run}/logs/{name}").raise_for_status().content


def node_log(hub: Hub, run: str, name: str = "70_driver_log.txt") -> bytes:
    """The same log where the process wrote it."""
    return (node_folder(hub, run) / "logs" / name).read_bytes()


def node_folder(hub: Hub, run: str, attempt: int = 1) -> Path:
    return hub.data_dir / "node" / "attempts" / f"{run}-{attempt}"
