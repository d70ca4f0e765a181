"""The command line in this process, and in a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from trainhub_cli.__main__ import run_command

PROJECT = Path(__file__).resolve().parents[2]
ROWS = 24


@dataclass
class Result:
    code: int
    out: str
    err: str


class CommandLine:
    """`trainhub` with a home of its own, for the hub at `url`."""

    def __init__(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        home: Path,
        url: str,
        token: str,
    ) -> None:
        self._capsys = capsys
        self.home = home
        self.environment = {"HOME": str(home), "TRAINHUB_URL": url, "TRAINHUB_TOKEN": token}
        for name in (
            "TRAINHUB_PROFILE",
            "TRAINHUB_CA_FILE",
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
            "DISPLAY",
            "NO_COLOR",
        ):
            monkeypatch.delenv(name, raising=False)
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def __call__(self, *arguments: str) -> Result:
        self._capsys.readouterr()
        code = run_command(arguments)
        out, err = self._capsys.readouterr()
        return Result(code, out, err)

    def in_terminal(
        self,
        *arguments: str,
        columns: int = 80,
        keys: Sequence[tuple[str, str]] = (),
        environment: Mapping[str, str] | None = None,
        seconds: float = 60,
    ) -> Result:
        """Runs it in a terminal. `keys`: what is typed when a text has appeared, in turn. Returns what was on
        the screen as `out`."""
        # Not `os.environ`, of which C does not know everything: readline sets COLUMNS there.
        variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        variables.update({**self.environment, "TERM": "xterm", **(environment or {})})
        argv = [sys.executable, "-m", "trainhub_cli", *arguments]
        return run_in_terminal(argv, variables, columns=columns, keys=keys, seconds=seconds)


def run_in_terminal(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    columns: int = 80,
    keys: Sequence[tuple[str, str]] = (),
    seconds: float = 60,
) -> Result:
    """Runs a program in a terminal until it ends, or for so many seconds. `keys`: what is typed when a text
    has appeared since the last keys, in turn. Returns what was on the screen as `out`."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        os.chdir(PROJECT)
        # Tests that run in the background may ignore what a terminal sends.
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(argv[0], [*argv], dict(environment))  # noqa: S606
    try:
        out = _type_and_read(terminal, list(keys), time.monotonic() + seconds)
    finally:
        os.close(terminal)
        status = _wait(pid)
    return Result(os.waitstatus_to_exitcode(status), out, "")


def _wait(pid: int) -> int:
    """Returns the status of a program whose terminal has gone; ends it if it goes on."""
    for _ in range(100):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def _type_and_read(terminal: int, keys: list[tuple[str, str]], end: float) -> str:
    out, seen = "", 0
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the program has ended
            break
        out += piece.decode(errors="replace")
        if keys and keys[0][0] in out[seen:]:
            seen = len(out)
            os.write(terminal, keys.pop(0)[1].encode())
    return out.replace("\r\n", "\n")
