"""Run in one of the two checkouts, by its own interpreter: starts its hub, then measures what standard input
asks for.

Each line of input is the name of a measurement; each answer is a line of JSON, name -> seconds. Everything
but this file comes from the checkout in the current folder."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from bench.idle import cpu_s
from bench.log_throughput import SCRIPT as NOISY
from bench.scale import enrolled

try:
    from bench.support.reporting_fleet import Road, Teller, Told
    from bench.support.stack import Stack, script_ready, stack

    MLFLOW_ARTIFACTS = "bench.support.mlflow_artifacts"
except ModuleNotFoundError:  # a checkout from before the benchmarks' parts had a folder of their own
    from bench.fleet import Road, Teller, Told  # type: ignore[import-not-found, no-redef]
    from bench.stack import Stack, script_ready, stack  # type: ignore[import-not-found, no-redef]

    MLFLOW_ARTIFACTS = "bench.mlflow_artifacts"

QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true"}
LEAVES_FILE = (
    "import os; os.makedirs('outputs', exist_ok=True); open('outputs/large.bin', "
    "'wb').write(os.urandom(200_000_000))\n"
)
# Like training it goes on after its first line: what a node does at the end of a run is no part of a launch.
FIRST_LINE = "import time\nprint('first line', flush=True)\ntime.sleep(0.4)\n"
FILE_BYTES = 200_000_000
LAUNCHES, DOWNLOADS = 15, 5
LOG_BYTES = 50_000_000
NODES, GPUS, ROADS = 100, 8, 20
SETTLE_S, INGEST_S, IDLE_S = 15.0, 20.0, 20.0


class Subject:
    """One hub and what is measured of it. `mlflow_python`: an interpreter with MLflow's client. `file`: what
    it sends."""

    def __init__(self, hub: Stack, mlflow_python: str, file: Path) -> None:
        self._hub = hub
        self._mlflow_python = mlflow_python
        self._file = file
        self._web = int((hub.data / "run" / "web.pid").read_text())
        self._first_line = hub.snapshot({"main.py": FIRST_LINE})
        self._noisy = hub.snapshot({"main.py": NOISY.format(bytes=LOG_BYTES)})
        self._file_url = ""
        self._fleet: Fleet | None = None

    def launch(self) -> dict[str, float]:
        """From the request to the script's first line in the hub's log: the median of a few. Not from the
        answer: work that moves from before it to after it changes nothing for whoever waits."""
        return {"launch": statistics.median(self._launch() for _ in range(LAUNCHES))}

    def log(self) -> dict[str, float]:
        """From the first byte that one of two ranks writes to the last one in the hub's logs."""
        distribution = {
            "type": "pytorch",
            "process_count": 2,
            "node_count": 1,
            "communication_backend": "gloo",
        }
        run = self._hub.submit(self._noisy, "main.py", distribution=distribution)
        logs = [self._hub.log_file(run, f"70_driver_log_{rank}.txt") for rank in (0, 1)]
        deadline = time.monotonic() + 120
        while not all(script_ready(log, LOG_BYTES) for log in logs):
            if time.monotonic() > deadline:
                raise RuntimeError(f"logs not whole after 120 s: {self._hub.api('GET', f'/runs/{run}/')}")
            time.sleep(0.002)
        ended = started = time.time()
        self._hub.wait(run)
        for rank, log in enumerate(logs):
            address = f"{self._hub.url}/api/v1/runs/{run}/outputs/rank_{rank}.txt"
            began_at, digest = self._hub.client.get(address).raise_for_status().text.split()
            started = min(started, float(began_at))
            if hashlib.sha256(log.read_bytes()).hexdigest() != digest:
                raise RuntimeError(f"rank {rank}: the hub's log differs from what was written")
        return {"100 MB of log": ended - started}

    def artifact(self) -> dict[str, float]:
        """A file up and down by MLflow's own client, and the seconds of a core that the web server takes for
        both."""
        env = {
            **os.environ,
            **QUIET,
            "MLFLOW_TRACKING_URI": self._hub.url,
            "MLFLOW_TRACKING_TOKEN": self._hub.token,
        }
        argv = [self._mlflow_python, "-m", MLFLOW_ARTIFACTS, str(self._file)]
        before = cpu_s(self._web)
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
        spent = cpu_s(self._web) - before
        result = json.loads(done.stdout.splitlines()[-1])
        if not result["same"]:
            raise RuntimeError("the hub gave other bytes than it got")
        # The client writes what it fetches to the disk, so its time says more of the disk: `download`
        # measures the hub.
        return {"artifact up": result["up_s"], "artifact: CPU": spent}

    def download(self) -> dict[str, float]:
        """A file that a run has left, read by a client that keeps nothing: the median of a few."""
        if not self._file_url:
            run = self._hub.submit(self._hub.snapshot({"main.py": LEAVES_FILE}), "main.py")
            if self._hub.wait(run)["state"] != "Completed":
                raise RuntimeError(
                    f"the run that leaves the file failed: {self._hub.api('GET', f'/runs/{run}/')}"
                )
            self._file_url = f"{self._hub.url}/api/v1/runs/{run}/outputs/large.bin"
        return {"download": statistics.median(self._download() for _ in range(DOWNLOADS))}

    def ingest(self) -> dict[str, float]:
        """Seconds of a core that the web server takes for a report of a node with 8 GPUs."""
        if self._fleet is None:
            self._fleet = Fleet(self._hub)
        results = self._fleet.results
        before, answers = cpu_s(self._web), len(results.answer_s)
        time.sleep(INGEST_S)
        spent, count = cpu_s(self._web) - before, len(results.answer_s) - answers
        if results.refused or not count:
            raise RuntimeError(f"reports were refused or not answered: {results.refused}")
        return {"report: CPU": spent / count}

    def idle(self) -> dict[str, float]:
        """Seconds of a core that the whole stack takes while nothing happens, for each second."""
        time.sleep(SETTLE_S)
        before = {pid: cpu_s(pid) for pid in self._hub.pids()}
        time.sleep(IDLE_S)
        return {"idle: CPU": sum(cpu_s(pid) - spent for pid, spent in before.items()) / IDLE_S}

    def _download(self) -> float:
        started, count = time.monotonic(), 0
        with self._hub.client.stream("GET", self._file_url) as answer:
            for chunk in answer.raise_for_status().iter_raw(2**20):
                count += len(chunk)
        if count != FILE_BYTES:
            raise RuntimeError(f"{count} bytes came instead of {FILE_BYTES}")
        return time.monotonic() - started

    def _launch(self) -> float:
        started = time.monotonic()
        run = self._hub.submit(self._first_line, "main.py")
        log = self._hub.log_file(run)
        while not script_ready(log):
            if time.monotonic() - started > 30:
                raise RuntimeError(f"no log after 30 s: {self._hub.api('GET', f'/runs/{run}/')}")
            time.sleep(0.001)
        took = time.monotonic() - started
        self._hub.wait(run)
        return took


class Fleet:
    """Nodes that report from now on, in a thread of their own. Ready when the costly first reports are
    over."""

    def __init__(self, hub: Stack) -> None:
        self.results = Told()
        started = time.monotonic()
        self._nodes = [
            Teller(name, token, GPUS, started + index * 5.0 / NODES)
            for index, (name, token) in enumerate(enrolled(hub, NODES).items())
        ]
        self._address = urlsplit(hub.url)
        threading.Thread(target=asyncio.run, args=(self._report(),), daemon=True).start()
        while len(self.results.answer_s) < NODES:
            time.sleep(0.5)
        time.sleep(SETTLE_S)

    async def _report(self) -> None:
        loop = asyncio.get_running_loop()
        for first in range(ROADS):
            road = partial(Road, self._nodes[first::ROADS], self.results)
            await loop.create_connection(road, self._address.hostname or "", self._address.port or 0)
        await asyncio.Event().wait()


def main() -> None:
    mlflow_python, file = sys.argv[1:]
    with stack() as hub:
        subject = Subject(hub, mlflow_python, Path(file))
        print("ready", flush=True)
        for line in sys.stdin:
            print(json.dumps(getattr(subject, line.strip())()), flush=True)


if __name__ == "__main__":
    main()
