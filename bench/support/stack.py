"""A TrainHub of its own for a measurement: real `manage.py up`, free port, temporary data folder."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.harness import guard

# A calm machine needs 4; beside other work it is longer, which is no fault of what is measured.
MAX_START_S = 240
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Stack:
    url: str
    data: Path
    supervisor: subprocess.Popen[bytes]
    started_s: float
    started_cpu_s: float = 0.0
    """CPU seconds of all processes until the first answer."""
    settings: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable
    token: str = ""
    client: httpx.Client = field(default_factory=httpx.Client)

    def api(self, method: str, path: str, **kwargs: Any) -> Any:
        answer = self.client.request(method, f"{self.url}/api/v1{path}", **kwargs)
        if answer.is_error:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json() if answer.content else None

    def snapshot(self, files: dict[str, str]) -> str:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        files_part = {"file": ("source.zip", buffer.getvalue(), "application/zip")}
        return str(self.api("POST", "/snapshots/", files=files_part)["id"])

    def submit(self, snapshot: str, script: str, **spec: Any) -> str:
        body = {
            "source": {"type": "snapshot", "id": snapshot},
            "script": script,
            "experiment": "bench",
            **spec,
        }
        return str(self.api("POST", "/runs/", json=body)["id"])

    def wait(self, run: str, seconds: float = 60) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            answer: dict[str, Any] = self.api("GET", f"/runs/{run}/")
            if answer["state"] in ("Completed", "Failed", "Canceled"):
                return answer
            time.sleep(0.05)
        raise RuntimeError(f"run {run} did not end within {seconds} s")

    def log_file(self, run: str, name: str = "70_driver_log.txt") -> Path:
        return own_folder(self.data) / "runs" / run / "1" / "logs" / name

    def shell(self, code: str) -> str:
        """What this code prints in one of the hub's own processes."""
        env = {
            **os.environ,
            **self.settings,
            "DATA_DIR": str(self.data),
            "BIND": self.url.removeprefix("http://"),
        }
        command = [self.python, "manage.py", "shell", "-c", code]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout

    def pids(self) -> list[int]:
        """The supervisor and everything below it."""
        pids, queue = [], [self.supervisor.pid]
        while queue:
            pid = queue.pop()
            pids.append(pid)
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                queue += [int(child) for child in task.read_text().split()]
        return pids


def process_cpu_s(pid: int) -> float:
    """Returns the CPU seconds of the process and of those of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def stack(data: Path | None = None, /, *, python: str = sys.executable, **settings: str) -> Iterator[Stack]:
    """A running TrainHub on the folder `data`, or on a new one."""
    guard.start()
    with ExitStack() as contexts:
        folder = str(data or contexts.enter_context(tempfile.TemporaryDirectory(prefix="th-bench-")))
        guard.own_folder(folder)
        port = free_port()
        # Folders for temporary files are closed to other accounts.
        as_root = {"RUN_AS": "root"} if os.geteuid() == 0 else {}
        env = {**os.environ, **as_root, **settings, "DATA_DIR": folder, "BIND": f"127.0.0.1:{port}"}
        started = time.monotonic()
        supervisor = subprocess.Popen(
            [python, "manage.py", "up"], cwd=ROOT, env=env, stdout=subprocess.DEVNULL
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _await_answer(f"{url}/healthz", supervisor)
            started = time.monotonic() - started
            out = Stack(url, Path(folder), supervisor, started, settings=settings, python=python)
            out.started_cpu_s = sum(process_cpu_s(pid) for pid in out.pids())
            out.token = _token(env, python)
            out.client = httpx.Client(headers={"Authorization": f"Bearer {out.token}"}, timeout=60)
            _await_node(out)
            yield out
        finally:
            supervisor.send_signal(signal.SIGINT)
            supervisor.wait(30)


def own_folder(data: Path) -> Path:
    """What belongs to the hub itself: a part of its data folder if it has an account of its own."""
    return data / "hub" if (data / "hub").exists() else data


def script_ready(path: Path, least: int = 1) -> bool:
    try:
        return path.stat().st_size >= least
    except FileNotFoundError:
        return False


def summary(name: str, seconds: list[float]) -> str:
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return (
        f"{name:<44} median {ordered[len(ordered) // 2] * 1e3:8.1f} ms   p99 {p99 * 1e3:8.1f} ms   "
        f"n={len(ordered)}"
    )


def _await_answer(url: str, supervisor: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + MAX_START_S
    while time.monotonic() < deadline:
        if supervisor.poll() is not None:
            raise RuntimeError(f"manage.py up ended with {supervisor.returncode}")
        try:
            if httpx.get(url, timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.01)
    raise RuntimeError(f"manage.py up did not answer within {MAX_START_S} s")


def _token(env: dict[str, str], python: str) -> str:
    done = subprocess.run(
        [python, "manage.py", "token", "create", "admin"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    match = re.search(r"\S{30,}", done.stdout)
    if match is None:
        raise RuntimeError(f"no token in {done.stdout!r}")
    return match.group()


def _await_node(out: Stack) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        text = json.dumps(out.api("GET", "/nodes/"))
        if '"ready"' in text:
            return
        time.sleep(0.1)
    raise RuntimeError("the local node did not become ready within 30 s")
