"""The processes that `up` keeps running: how each is started, and how often it may die."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from trainhub import installation
from trainhub.files import write_secret
from trainhub.logs import log_configuration, rotation

SHORT_LIFE_S = 5.0
STABLE_LIFE_S = 60.0
DEATHS_ALLOWED = 5
BACKOFF_S = (0.0, 0.5, 1, 2, 5, 10, 15)
PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
# Fewer memory arenas of the C library save memory in processes with many threads.
LEAN = {"MALLOC_ARENA_MAX": "2", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""}


@dataclass(slots=True)
class Child:
    """One process that is restarted when it dies. `stage` orders the stop: higher stages end first."""

    name: str
    title: str
    argv: tuple[str, ...]
    stage: int
    env: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restart_at: float | None = None
    quick_deaths: int = 0
    deaths: int = 0

    @property
    def log(self) -> Path:
        return installation.LOGS / f"{self.name}.log"

    @property
    def pid_file(self) -> Path:
        return installation.OWN_DIR / "run" / f"{self.name}.pid"

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Starts the process in a session of its own, so that Ctrl-C in the terminal reaches only `up`, which
        stops all in order."""
        self.tend_log()
        with self._output() as output:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=installation.BASE_DIR,
                env={**os.environ, **LEAN, **self.env},
                start_new_session=True,
                pass_fds=self.pass_fds,
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - `up` has one thread
            )
        self.started_at = time.monotonic()
        self.restart_at = None
        write_secret(self.pid_file, f"{self.process.pid}\n")

    def _output(self) -> AbstractContextManager[IO[bytes] | None]:
        """Returns where the process writes to; None for the output of `up`."""
        if log_configuration.is_on_stdout():
            return nullcontext()
        return open(rotation.open_log(self.log), "ab")  # noqa: PTH123

    @property
    def _rotates_its_log(self) -> bool:
        if log_configuration.is_on_stdout():
            return False
        # A process that lived for long starts again with the shortest pause.
        return self.argv[:2] == (sys.executable, "-m")

    @property
    def _command(self) -> tuple[str, ...]:
        """The command to run. A Python module is run by `trainhub.logs.rotation`, which limits the size of
        its log."""
        if not self._rotates_its_log:
            return self.argv
        return (*self.argv[:2], "trainhub.logs.rotation", str(self.log), *self.argv[2:])

    def tend_log(self) -> None:
        """Rotates a large log if its process opens it anew for each line, as Valkey does, or does not run."""
        if (self.process is None or not self._rotates_its_log) and rotation.is_too_large(self.log):
            rotation.rotate(self.log)

    def died(self) -> str:
        """Counts the death, plans the restart and returns how the process ended, as part of a sentence."""
        now = time.monotonic()
        lived = now - self.started_at
        self.quick_deaths = self.quick_deaths + 1 if lived < SHORT_LIFE_S else 0
        self.deaths = 1 if lived > STABLE_LIFE_S else self.deaths + 1
        self.restart_at = now + BACKOFF_S[min(self.deaths, len(BACKOFF_S)) - 1]
        return ending(self.process.returncode if self.process else 0)

    @property
    def hopeless(self) -> bool:
        return self.quick_deaths >= DEATHS_ALLOWED

    def send(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def tail(self, lines: int = 12) -> str:
        if log_configuration.is_on_stdout():
            return "    (its lines are above)"
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
        return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])


def ending(returncode: int) -> str:
    if returncode < 0:
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"exited with code {returncode}"


def python(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, *arguments)


def end_with_parent(*, no_new_privileges: bool = False) -> Callable[[], None] | None:
    """Returns a function for preexec_fn that makes the kernel send SIGTERM to the child when its parent dies;
    None outside of Linux.

    `no_new_privileges`: neither the child nor what it starts gains rights by programs with the setuid bit."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def arrange() -> None:
        if no_new_privileges and prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            os._exit(1)
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        # The parent may have ended before PR_SET_PDEATHSIG took effect; then the signal never comes.
        if os.getppid() != parent:
            os._exit(1)

    return arrange
