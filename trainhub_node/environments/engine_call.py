"""Calls the container engine from the child of an attempt: bounded, and ended by a stop request."""

from __future__ import annotations

import os
import time

from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_node.containers.engine import error_lines
from trainhub_node.environments import builder_account, process_wait
from trainhub_node.supervisor import gang as gangs
from trainhub_node.supervisor import rank
from trainhub_node.supervisor.gang import Gang

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

MAX_OUTPUT_BYTES = 1024 * 1024


class EngineTimeout(Exception):
    """The call did not end in time."""


class EngineResult:
    """`code`: the exit code. `output` and `errors`: what it wrote, without empty lines."""

    def __init__(self, code: int, output: str, errors: str) -> None:
        self.code = code
        self.output = output.strip()
        self.errors = error_lines(errors)

    @property
    def last_error(self) -> str:
        return self.errors[-1].removeprefix("Error: ") if self.errors else f"it ended with code {self.code}"


def call_engine(
    gang: Gang, argv: Sequence[str], variables: Mapping[str, str], *, timeout_s: float
) -> EngineResult:
    """Runs the engine to its end. Raises EngineTimeout, and StopRequested after ending it.

    Files in memory, not pipes: what the engine leaves running keeps its end of a pipe open."""
    output, errors = os.memfd_create("output"), os.memfd_create("errors")
    try:
        code = _run(gang, (argv, variables), (output, errors), timeout_s)
        return EngineResult(code, _content(output), _content(errors))
    finally:
        os.close(output)
        os.close(errors)


def call_with_log(
    gang: Gang,
    argv: Sequence[str],
    variables: Mapping[str, str],
    *,
    timeout_s: float,
    on_poll: Callable[[], None] | None = None,
    ends_with_parent: bool = False,
) -> int:
    """Runs the engine with its output in the environment's build log. Returns the exit code. `on_poll` is
    called while it runs; `ends_with_parent`: it is killed if this process is. Raises as `call_engine`."""
    path = gang.folder.log(ENVIRONMENT_LOG)
    gangs.append_to_file(path, f"+ {' '.join(argv)}\n".encode(errors="backslashreplace"))
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        call = (argv, variables)
        return _run(gang, call, (log, log), timeout_s, on_poll=on_poll, ends_with_parent=ends_with_parent)
    finally:
        os.close(log)


def _run(
    gang: Gang,
    call: tuple[Sequence[str], Mapping[str, str]],
    files: tuple[int, int],
    timeout_s: float,
    *,
    on_poll: Callable[[], None] | None = None,
    ends_with_parent: bool = False,
) -> int:
    """Runs the program of `call` with `files` as its output and errors."""
    deadline = time.monotonic() + timeout_s

    def check_deadline() -> None:
        if on_poll is not None:
            on_poll()
        if time.monotonic() > deadline:
            raise EngineTimeout

    pid = os.fork()
    if pid == 0:
        _exec(*call, *files, ends_with_parent=ends_with_parent)
    try:
        return process_wait.wait_for_exit(gang, pid, check_deadline)
    except BaseException:
        process_wait.end_group(pid)
        raise


def _exec(
    argv: Sequence[str], variables: Mapping[str, str], output: int, errors: int, *, ends_with_parent: bool
) -> NoReturn:
    try:
        os.setpgid(0, 0)
        if ends_with_parent:
            builder_account.end_with_parent()
        rank.redirect_output(errors)
        os.dup2(output, 1)
        os.umask(0o022)
        os.chdir("/")
        rank.reset_signals()
        os.execve(argv[0], list(argv), dict(variables))
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(rank.CANNOT_RUN)


def _content(file: int) -> str:
    return os.pread(file, MAX_OUTPUT_BYTES, 0).decode(errors="replace")
