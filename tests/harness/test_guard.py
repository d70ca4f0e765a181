"""A test run that is interrupted leaves no process, no Valkey and no network namespace behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import guard
from tests.hub import PROJECT, eventually
from tests.journeys.runs import alive

PYTEST = (sys.executable, "-m", "pytest", "-q")
CASE = "tests/harness/interrupted.py"


@dataclass(frozen=True)
class InterruptedRun:
    """A test run in a process of its own. `network`: the prefix of its devices and namespaces."""

    process: subprocess.Popen[bytes]
    marks: tuple[str, ...]
    network: str

    def command_lines(self) -> dict[int, bytes]:
        """Of each living process whose environment or title names the run's folder or one of its sockets."""
        lines = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if entry.name.isdecimal():
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    if any(
                        os.fsencode(mark) in line + (entry / "environ").read_bytes() for mark in self.marks
                    ):
                        lines[int(entry.name)] = line
        return lines

    def devices(self) -> list[str]:
        """Its network namespaces and the interfaces on this machine."""
        if os.getuid() != 0:
            return []
        commands = (["ip", "netns"], ["ip", "-br", "link"])
        texts = [subprocess.run(one, capture_output=True, text=True, check=True).stdout for one in commands]
        return [line for line in "\n".join(texts).splitlines() if line.startswith(self.network)]

    def assert_gone(self) -> None:
        eventually(lambda: not self.command_lines(), 60, f"no process of {self.marks} is left")
        eventually(lambda: not self.devices(), 10, f"no device named {self.network}... is left")


@contextmanager
def interrupted_run(folder: Path, command: Sequence[str]) -> Iterator[InterruptedRun]:
    """The run once all its parts live."""
    ready = folder / "ready"
    with (folder / "console").open("wb") as console:
        process = subprocess.Popen(
            # A shell starts what it puts into the background with SIGINT ignored, and all below inherit that.
            ["env", "--default-signal=INT", *command],
            cwd=PROJECT,
            env={**os.environ, "INTERRUPTED_READY": str(ready)},
            stdout=console,
            stderr=console,
            start_new_session=True,
        )
    try:
        eventually(lambda: ready.exists() or process.poll() is not None, 300, "the inner run is ready")
        assert ready.exists(), (folder / "console").read_text()
        network, *sockets = ready.read_text().split()
        run = InterruptedRun(process, (str(folder), *sockets), network)
        parts = b"\n".join(run.command_lines().values())
        assert parts.count(b"valkey-server") == 2, parts
        assert b"trainhub_node run" in parts, parts
        assert b" main.py" in parts, parts
        assert run.devices() or os.getuid() != 0
        yield run
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "number"),
    # SIGTERM: by make, below.
    [pytest.param("0", signal.SIGINT, marks=pytest.mark.long), ("1", signal.SIGKILL)],
)
def test_nothing_outlives_an_interrupted_run(tmp_path: Path, workers: str, number: signal.Signals) -> None:
    command = (*PYTEST, "-n", workers, "--basetemp", str(tmp_path / "base"), CASE)
    with interrupted_run(tmp_path, command) as run:
        run.process.send_signal(number)
        run.assert_gone()


@pytest.mark.slow
def test_sigterm_to_make_ends_the_run(tmp_path: Path) -> None:
    options = f"PYTEST=--basetemp {tmp_path / 'base'} {CASE}"
    with interrupted_run(tmp_path, ("make", "test-quick", options)) as run:
        run.process.terminate()
        run.assert_gone()


WATCHED = """
import os, subprocess, sys
from tests.harness import guard
guard.start()
guard.own_folder(sys.argv[1])
guard.on_exit("touch", sys.argv[1] + "/cleaned")
sleep = ["sleep", "600"]
clean = {"HOME": sys.argv[1]}
pids = [subprocess.Popen(sleep, start_new_session=True, env=env).pid for env in (None, clean)]
print(*pids, flush=True)
sys.stdin.read()
"""


def test_the_guard_ends_only_what_its_process_started(tmp_path: Path) -> None:
    """Also what started with a clean environment, by the folder it knows."""
    stranger = subprocess.Popen(["sleep", "600"], env={"HOME": f"{tmp_path}-2", "PWD": str(tmp_path)})
    command = [sys.executable, "-c", WATCHED, str(tmp_path)]
    watched = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert watched.stdout is not None
        pids = [int(word) for word in watched.stdout.readline().split()]
        assert len(pids) == 2
        watched.kill()
        eventually(
            (tmp_path / "cleaned").exists, 20, "the guard has ended the processes and run its commands"
        )
        assert not [pid for pid in pids if alive(pid)]
        assert stranger.poll() is None
    finally:
        for process in (watched, stranger):
            process.kill()
            process.wait()


def test_this_run_is_guarded() -> None:
    assert Path(os.environ[guard.VARIABLE].split(":")[-1]).is_dir()
