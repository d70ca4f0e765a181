"""A node agent of this checkout that joins a hub elsewhere, such as in a container."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.hub import PROJECT, eventually
from tests.runs import zipped


def client(url: str, token: str = "", authority: Path | None = None) -> httpx.Client:
    """Trusts any certificate if there is no file of an authority."""
    return httpx.Client(
        base_url=url,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        timeout=30,
        verify=False if authority is None else str(authority),
    )


@contextmanager
def joined(url: str, join_token: str, folder: Path, **variables: str) -> Iterator[None]:
    """While it lasts, the agent runs. `variables`: its settings."""
    environ = {**os.environ, **variables}
    command = [sys.executable, "-m", "trainhub_node"]
    join = [*command, "join", url, "--token", join_token, "--dir", str(folder)]
    done = subprocess.run(
        join, cwd=PROJECT, env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        run = [*command, "run", "--dir", str(folder)]
        agent = subprocess.Popen(run, cwd=PROJECT, env=environ, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        agent.terminate()
        agent.wait(60)


def complete_a_run(hub: httpx.Client, script: str) -> bytes:
    """Submits the script, waits for its end, and returns its log."""
    sent = hub.post("/api/v1/snapshots/", files={"file": ("source.zip", zipped({"train.py": script}))})
    source = {"type": "snapshot", "id": sent.raise_for_status().json()["id"]}
    spec = {"version": 1, "source": source, "script": "train.py", "environment": {"name": "system"}}
    run = hub.post("/api/v1/runs/", json=spec).raise_for_status().json()["id"]

    def ended() -> bool:
        state = hub.get(f"/api/v1/runs/{run}/").raise_for_status().json()["state"]
        assert state not in ("Failed", "Canceled")
        return bool(state == "Completed")

    eventually(ended, 180, f"run {run} completes")
    return hub.get(f"/api/v1/runs/{run}/logs/70_driver_log.txt").raise_for_status().content
