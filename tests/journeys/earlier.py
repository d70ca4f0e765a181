"""An earlier version of TrainHub, taken from the history of this checkout, and a node that runs it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.hub import PROJECT, Hub, eventually

# The last commit before modules, classes and functions were renamed and moved on 2026-11-22.
COMMIT = "1fb4fc7"


def unpack(folder: Path, commit: str = COMMIT) -> Path:
    """Writes the product's files of `commit` into `folder`.

    Skips the test in a checkout without that commit: a source archive, or a shallow clone, which
    `git fetch --unshallow` completes."""
    archive = subprocess.run(["git", "archive", commit], cwd=PROJECT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(
            f"this checkout has no commit {commit}; complete a shallow clone by git fetch --unshallow"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


class EarlierNode:
    """A node of `hub` whose agent runs the code in `project`. Call `join` once, then `start`."""

    def __init__(self, hub: Hub, project: Path, folder: Path, name: str) -> None:
        self.name = name
        self.folder = folder
        self._hub = hub
        self._project = project
        self._process: subprocess.Popen[bytes] | None = None

    def join(self, cluster: str) -> None:
        printed = self._hub.manage("node", "token", self.name, "--cluster", cluster).stdout
        token = next(word for word in printed.split() if word.startswith("thj_"))
        address = ["--name", self.name, "--address", "127.0.0.1"]
        done = self._command("join", self._hub.url, "--token", token, *address)
        assert done.wait(60) == 0, self.log()

    def start(self) -> None:
        self._process = self._command("run")

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def is_ready(self) -> bool:
        with self._hub.client() as client:
            nodes = client.get("/api/v1/nodes/").raise_for_status().json()
        return any(node["name"] == self.name and node["status"] == "ready" for node in nodes)

    def stop(self) -> None:
        if self._process is not None and self.is_running():
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(30)

    def log(self) -> str:
        return (self.folder.parent / f"{self.name}.console").read_text()

    def _command(self, command: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder.parent / f"{self.name}.console").open("ab") as console:
            return subprocess.Popen(
                [sys.executable, "-m", "trainhub_node", command, *arguments, "--dir", str(self.folder)],
                cwd=self._project,
                env={**os.environ, "TRAINHUB_NODE_CACHE": self._hub.env["TRAINHUB_NODE_CACHE"]},
                stdout=console,
                stderr=subprocess.STDOUT,
            )


def wait_until_ready(node: EarlierNode) -> None:
    eventually(node.is_ready, 60, f"{node.name} is ready: {node.log()}")
