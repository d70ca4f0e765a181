"""Runs that are submitted while servers die, pages that follow them, and what must hold afterwards."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.hub import FINAL, eventually
from tests.runs import zipped
from tests.servers.cluster import ServerCluster

LOG = "70_driver_log.txt"
# Each start leaves a line in a file of its own run; each line of the log has its number. All end early where
# there is a file `end`.
SCRIPT = """
import os, sys, time
with open(os.path.join(sys.argv[2], os.environ["TRAINHUB_RUN_ID"]), "a") as starts:
    starts.write("started\\n")
for number in range(int(sys.argv[1])):
    print(f"line {number} " + "x" * (number % 97), flush=True)
    time.sleep(0.02)
    if os.path.exists(os.path.join(sys.argv[2], "end")):
        break
"""


class Load:
    """Submits runs as a patient program does: again where no answer came."""

    def __init__(self, cluster: ServerCluster, starts: Path) -> None:
        self.cluster, self.starts = cluster, starts
        starts.mkdir(exist_ok=True)
        self.runs: list[str] = []
        self._client = cluster.hub.client()
        upload = {"file": ("source.zip", zipped({"train.py": SCRIPT}))}
        self._snapshot = self._patiently("POST", "/api/v1/snapshots/", files=upload)["id"]

    def submit(self, lines: int) -> str:
        source = {"type": "snapshot", "id": self._snapshot}
        spec = {
            "version": 1,
            "source": source,
            "script": "train.py",
            "arguments": [str(lines), str(self.starts)],
        }
        headers = {"Idempotency-Key": uuid4().hex}
        run = str(self._patiently("POST", "/api/v1/runs/", json=spec, headers=headers)["id"])
        self.runs.append(run)
        return run

    def end_all(self) -> None:
        """Lets every run end now, in order."""
        (self.starts / "end").touch()

    def facts(self, run: str) -> dict[str, Any]:
        return self._patiently("GET", f"/api/v1/runs/{run}/")

    def log(self, run: str, offset: int = 0) -> bytes:
        def read() -> httpx.Response:
            headers = {"Range": f"bytes={offset}-", "Accept-Encoding": "identity"}
            # All of it, however long it is: without `download` an answer has a limit.
            return self._client.get(f"/api/v1/runs/{run}/logs/{LOG}?download=1", headers=headers)

        answer = self._answered(read, httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE, httpx.codes.NOT_FOUND)
        if answer.status_code == httpx.codes.PARTIAL_CONTENT:
            return answer.content
        return answer.content[offset:] if answer.is_success else b""

    def wait(self, seconds: float) -> None:
        def active() -> list[str]:
            return [run for run in self.runs if self.facts(run)["state"] not in FINAL]

        eventually(lambda: not active(), seconds, "all runs have ended")

    def check(self) -> None:
        """No run is lost, none was started twice, and no byte of a log is missing or doubled."""
        for run in self.runs:
            facts = self.facts(run)
            assert facts["state"] == "Completed", facts
            assert (self.starts / run).read_text() == "started\n", f"run {run} was started twice"
            written = [path.read_bytes() for path in self._written(run)]
            assert written == [self.log(run)], f"the log of run {run} differs from that of its node"

    def _written(self, run: str) -> list[Path]:
        folders = (agent.folder / "node" / "attempts" for agent in self.cluster.agents)
        return [path for folder in folders for path in folder.glob(f"{run}-*/logs/{LOG}")]

    def _patiently(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        return dict(self._answered(lambda: self._client.request(method, path, **arguments)).json())

    def _answered(self, send: Callable[[], httpx.Response], *expected: int) -> httpx.Response:
        def answer() -> httpx.Response | None:
            try:
                response = send()
            except httpx.TransportError:
                return None
            if response.is_server_error:
                return None
            assert response.is_success or response.status_code in expected, response.text
            return response

        return eventually(answer, 60, "an answer")


class Page(threading.Thread):
    """Follows a log as the page of a run does: opens a socket, fetches what it lacks, and takes from each
    message what it does not have. Where the socket breaks it opens another one."""

    def __init__(self, load: Load, run: str, url: str = "") -> None:
        super().__init__(daemon=True)
        self._url = url or load.cluster.hub.url
        self._load, self.run_id = load, run
        self.text = b""
        self.reconnects = -1
        self.live_bytes = 0
        self._end = threading.Event()

    def run(self) -> None:
        url = f"{self._url.replace('http', 'ws')}/ws/runs/{self.run_id}/"
        headers = {"Authorization": f"Bearer {self._load.cluster.hub.owner_token()}"}
        while not self._end.is_set():
            try:
                with connect(url, additional_headers=headers, proxy=None, open_timeout=5) as socket:
                    self.reconnects += 1
                    self.text += self._load.log(self.run_id, len(self.text))
                    while not self._end.is_set():
                        self._take(json.loads(socket.recv(timeout=30)))
            except (OSError, WebSocketException, TimeoutError):
                time.sleep(0.2)

    def end(self) -> None:
        """Lets it stop, which it does within 30 s."""
        self._end.set()

    def close(self) -> bytes:
        self.end()
        self.join(35)
        return self.text

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] != "log.appended" or message["name"] != LOG:
            return
        offset, end = message["offset"], message["offset"] + message["size"]
        if offset > len(self.text) or "data" not in message:
            self.text += self._load.log(self.run_id, len(self.text))
        elif end > len(self.text):
            new = base64.b64decode(message["data"])[len(self.text) - offset :]
            self.text += new
            self.live_bytes += len(new)


@contextmanager
def submitting(load: Load, every_s: float) -> Iterator[list[Page]]:
    """Submits two runs every few seconds, and follows one of them as a page."""
    pages: list[Page] = []
    failures: list[BaseException] = []
    end = threading.Event()

    def submit() -> None:
        try:
            while not end.is_set():
                page = Page(load, load.submit(lines=300))
                page.start()
                pages.append(page)
                load.submit(lines=50)
                end.wait(every_s)
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=submit)
    thread.start()
    try:
        yield pages
    finally:
        end.set()
        thread.join()
    assert not failures, failures


def kill_in_turn(
    cluster: ServerCluster, times: int, every_s: float, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Kills one server after the other with -9, with all that it has started, and starts it again.
    `meanwhile` is called while it is dead."""
    # In the thread of the test: what a thread has started gets a signal when that thread ends.
    begin = time.monotonic()
    for number in range(times):
        time.sleep(max(0.0, begin + (number + 1) * every_s - time.monotonic()))
        server = cluster.servers[number % len(cluster.servers)]
        server.kill_all()
        meanwhile()
        server.start()


def check_afterwards(load: Load, pages: Sequence[Page]) -> None:
    """Holds what must hold, whichever servers died while all of this went on."""
    load.wait(120)
    load.check()
    # All at once: there may be hundreds.
    for page in pages:
        page.end()
    for page in pages:
        shown, stored = page.close(), load.log(page.run_id)
        assert shown == stored, f"a page has a gap or a doubled line: {len(shown)} of {len(stored)} bytes"
    assert sum(page.live_bytes for page in pages) > 0
    assert sum(max(0, page.reconnects) for page in pages) > 0
