"""Two versions side by side: the hub of the version before works on the database that this one has migrated,
this one takes over and gives back, and runs on nodes of both go on meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests import runs
from tests.hub import FINAL, PROJECT, Hub, eventually
from tests.journeys.earlier import EarlierNode, unpack, wait_until_ready
from tests.platform.postgres import postgresql  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow
# The version before: the last commit before migrations had to expand first. A release moves it to its tag.
PREVIOUS = "a2dd5793"
TRAINS = """
import os, pathlib, time
number = 0
while not pathlib.Path(os.environ["GO_ON"]).exists():
    number += 1
    print("line", number, flush=True)
    time.sleep(0.05)
"""
SHORT = "import time; time.sleep(0.5); print('short')"


class UpgradedHub(Hub):
    """Hubs of all versions run everything as root, because the folders of tests are closed to others."""

    is_new = True

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, "RUN_AS": "root"}

    def turn_to(self, project: Path) -> None:
        """Stops the hub and starts the code in `project` on the same data."""
        assert self.stop() == 0
        self.project = project
        self.start()


class Submitter(threading.Thread):
    """Submits a short run to each cluster in turn until `close`; what a stopped hub refuses comes again."""

    def __init__(self, hub: Hub, clusters: tuple[str, ...]) -> None:
        super().__init__(daemon=True)
        self._hub, self._clusters = hub, clusters
        self._closing = threading.Event()
        self.submitted: list[str] = []

    def run(self) -> None:
        while not self._closing.wait(1):
            cluster = self._clusters[len(self.submitted) % len(self._clusters)]
            try:
                self.submitted.append(runs.submit(self._hub, SHORT, resources={"cluster": cluster}))
            except (httpx.TransportError, httpx.HTTPStatusError, AssertionError):
                continue

    def close(self) -> list[str]:
        self._closing.set()
        self.join()
        return self.submitted


@pytest.fixture
def hub(postgresql: str, tmp_path: Path) -> Iterator[UpgradedHub]:  # noqa: F811
    hub = UpgradedHub(tmp_path / "data", OPEN="1", DATABASE_URL=postgresql)
    hub.project = unpack(tmp_path / "previous", PREVIOUS)
    try:
        yield hub
    finally:
        hub.stop()


def test_runs_go_on_through_an_upgrade_and_back(hub: UpgradedHub, tmp_path: Path) -> None:
    previous = hub.project
    hub.start()
    nodes = [EarlierNode(hub, previous, tmp_path / "node-a", "before")]
    nodes[0].join("before")
    nodes[0].start()
    wait_until_ready(nodes[0])
    go_on = tmp_path / "go-on"
    variables = {"environment_variables": {"GO_ON": str(go_on)}}
    long = [
        runs.submit(hub, TRAINS, resources={"cluster": name}, **variables) for name in ("local", "before")
    ]
    submitter = Submitter(hub, ("local", "before"))
    submitter.start()
    try:
        for run in long:
            runs.wait_for(hub, run, "Running")
        # The hub of before works while the new version looks, migrates, and afterwards.
        assert "only adds" in _new(hub, "upgrade", "--check")
        _new(hub, "migrate", "--verbosity", "0")
        runs.wait_for(hub, runs.submit(hub, SHORT), "Completed")

        hub.turn_to(PROJECT)
        nodes.append(EarlierNode(hub, PROJECT, tmp_path / "node-b", "new"))
        nodes[1].join("new")
        nodes[1].start()
        wait_until_ready(nodes[1])
        long.append(runs.submit(hub, TRAINS, resources={"cluster": "new"}, **variables))
        for run in long:
            runs.wait_for(hub, run, "Running")
        for name in ("local", "before", "new"):
            runs.wait_for(hub, runs.submit(hub, SHORT, resources={"cluster": name}), "Completed")

        hub.turn_to(previous)
        for node in nodes:
            wait_until_ready(node)
            later = runs.submit(hub, SHORT, resources={"cluster": node.name})
            runs.wait_for(hub, later, "Completed")
        go_on.touch()
        check_whole_logs(hub, long)
        check_completed(hub, submitter.close())
    finally:
        submitter.close()
        go_on.touch()
        for node in nodes:
            node.stop()


def check_whole_logs(hub: Hub, long: list[str]) -> None:
    for run in long:
        runs.wait_for(hub, run, "Completed")
        lines = runs.log(hub, run).splitlines()
        assert lines == [b"line %d" % number for number in range(1, len(lines) + 1)]


def check_completed(hub: Hub, submitted: list[str]) -> None:
    assert submitted
    eventually(lambda: all(runs.told(hub, run)["state"] in FINAL for run in submitted), 60)
    assert {runs.told(hub, run)["state"] for run in submitted} == {"Completed"}


def _new(hub: Hub, *arguments: str) -> str:
    """What a command of this version says about the hub that runs."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env=hub.env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
