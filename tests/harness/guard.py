"""Ends what a test run or a benchmark started, however the run itself ends: a small process that watches it.

`start` begins to watch this process. Everything that it starts from then on carries the variable
PYTEST_GUARD, whose last entry is the guard's folder. When this process ends, even by SIGKILL, the guard ends
the processes that carry that entry or name a folder of `own_folder` in their environment, with all their
descendants. Then it runs the commands of `on_exit`. It touches no other process, so several runs can share a
machine.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

VARIABLE = "PYTEST_GUARD"
GRACE_S = 3.0
KILL_S = 20.0
POLL_S = 0.05
TYPED_BY_PEOPLE = (b"PWD=", b"OLDPWD=", b"_=")
"""Variables of a shell that name the folder somebody looks into: such a shell does not belong to the run."""

_guards: list[subprocess.Popen[bytes]] = []


def start() -> None:
    """Watch this process from now on. Called again, or where there is no /proc, it does nothing."""
    if _guards or not sys.platform.startswith("linux"):
        return
    folder = tempfile.mkdtemp(prefix="th-guard-")
    command = [sys.executable, "-I", "-S", __file__, folder, str(os.getpid())]
    null = subprocess.DEVNULL
    guard = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=null, stderr=null, cwd="/", start_new_session=True
    )
    _guards.append(guard)
    os.environ[VARIABLE] = ":".join([*_entries(), folder])
    atexit.register(stop)


def stop() -> None:
    """Have everything ended now, and wait until it is gone."""
    if not _guards:
        return
    guard = _guards.pop()
    os.environ[VARIABLE] = ":".join(_entries()[:-1])
    assert guard.stdin is not None
    guard.stdin.write(b".")
    guard.stdin.close()
    guard.wait(GRACE_S + 2 * KILL_S)


def own_folder(path: os.PathLike[str] | str) -> None:
    """Processes whose environment names this folder belong to the run. Ranks have no other mark."""
    _register({"folder": os.fspath(path)})


def on_exit(*command: str) -> None:
    """Run this command after the processes have ended. It may fail: most tests clean up themselves."""
    _register({"command": command})


def _entries() -> list[str]:
    return [entry for entry in os.environ.get(VARIABLE, "").split(":") if entry]


def _register(entry: dict[str, object]) -> None:
    if not _entries():
        return
    # A single short write in append mode: several test processes may write at once.
    with open(f"{_entries()[-1]}/registered", "ab", buffering=0) as file:  # noqa: PTH123
        file.write(json.dumps(entry).encode() + b"\n")


def _registered(folder: str, key: str) -> Iterator[object]:
    with contextlib.suppress(FileNotFoundError), open(f"{folder}/registered", "rb") as file:  # noqa: PTH123
        for line in file:
            if key in (entry := json.loads(line)):
                yield entry[key]


def _is_marked(environment: bytes, folders: list[bytes]) -> bool:
    entries = (entry for entry in environment.split(b"\0") if not entry.startswith(TYPED_BY_PEOPLE))
    return any(folder in entry + b"/" for entry in entries for folder in folders)


def processes_of(folder: str) -> set[int]:
    """Living processes of the run that this guard's folder stands for, and all their descendants."""
    folders = [os.fsencode(f"{name}/") for name in (folder, *_registered(folder, "folder"))]
    # In the variable the guard's folder may be followed by that of a guard inside the run.
    folders.append(os.fsencode(f"{folder}:"))
    members: set[int] = set()
    parents: dict[int, int] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                environment = file.read()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has ended, or belongs to another account
        if state not in (b"Z", b"X"):
            parents[int(name)] = int(parent)
            if _is_marked(environment, folders):
                members.add(int(name))
    while more := {pid for pid, parent in parents.items() if parent in members} - members:
        members |= more
    return members - {os.getpid()}


def _end_processes(folder: str) -> None:
    """SIGTERM first, so that hubs end their parts in order, then SIGKILL until nothing is left."""
    for number, seconds in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, KILL_S)):
        deadline = time.monotonic() + seconds
        signalled: set[int] = set()
        while (members := processes_of(folder)) and time.monotonic() < deadline:
            for pid in members if number == signal.SIGKILL else members - signalled:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            signalled |= members
            time.sleep(POLL_S)


def watch(folder: str, pid: int) -> None:
    """Wait until the watched process ends or calls `stop`, then end everything that belongs to it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        if os.getppid() == pid:
            # The pipe alone would not do: a test that forks holds it open longer than the run lives.
            select.select([process, 0], [], [])
    _end_processes(folder)
    for command in _registered(folder, "command"):
        assert isinstance(command, list)
        subprocess.run(command, stdin=subprocess.DEVNULL, check=False, timeout=KILL_S)
    shutil.rmtree(folder)


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
