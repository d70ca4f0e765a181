"""Making a virtual environment: `venv`, then pip, their output live in the environment's build log."""

from __future__ import annotations

import os
import sys

from trainhub_node import rank, variables
from trainhub_node.gang import Gang, Refused
from trainhub_node.rundir import ENVIRONMENT_LOG

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal  # `signal` itself builds enums for 5 ms

LOG = ENVIRONMENT_LOG
TAIL_BYTES = 16384
STOP_CHECK_S = 0.25
TERM_GRACE_S = 3.0


def build(gang: Gang, spec: dict[str, Any], python: str, folder: str) -> None:
    """Make the environment in `folder`. Raises Refused with pip's own last word, or Stopped."""
    os.mkdir(folder, 0o755)
    account = gang.terms["account"]
    if account is not None:
        os.chown(folder, account["uid"], account["gid"])
    _make_venv(gang, python, folder)
    argv = [*_pip(folder), "install", "--no-input", "--progress-bar", "off", "--disable-pip-version-check"]
    for position, url in enumerate(spec["index_urls"]):
        argv += ["--extra-index-url" if position else "--index-url", url]
    if spec["requirements"] and _call(gang, [*argv, "--", *spec["requirements"]]) != 0:
        raise Refused("environment", f"pip could not install {', '.join(spec['requirements'])}: {_last_word(gang)}")


def _make_venv(gang: Gang, python: str, folder: str) -> None:
    if _call(gang, [python, "-m", "venv", folder]) == 0:
        return
    # Debian's Python comes without ensurepip; then this agent's own pip installs into the environment.
    if _call(gang, [python, "-m", "venv", "--clear", "--without-pip", folder]) != 0:
        raise Refused("environment", f"{python} could not make a virtual environment: {_last_word(gang)}")


def _pip(folder: str) -> list[str]:
    if os.path.exists(f"{folder}/bin/pip"):
        return [f"{folder}/bin/python", "-m", "pip"]
    return [sys.executable, "-m", "pip", "--python", f"{folder}/bin/python"]


def _call(gang: Gang, argv: list[str]) -> int:
    """Run `argv` to its end, its output in the build log. Raises Stopped, its whole group ended."""
    log = os.open(gang.folder.log(LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.write(log, f"+ {' '.join(map(_without_password, argv))}\n".encode(errors="backslashreplace"))
    account = gang.terms["account"]
    env = {**variables.base(account), **gang.terms["pip"], "PYTHONUNBUFFERED": "1"}
    pid = os.fork()
    if pid == 0:
        _become(argv, env, log, account)
    os.close(log)
    try:
        return _wait(gang, pid)
    except BaseException:
        _end(pid)
        raise


def _without_password(item: str) -> str:
    """An index URL may carry a password; the build log is shown to everybody who sees the run."""
    scheme, found, rest = item.partition("://")
    user, at, host = rest.partition("/")[0].rpartition("@")
    return f"{scheme}://****@{rest[len(user) + 1 :]}" if found and at and host else item


def _become(argv: list[str], env: dict[str, str], log: int, account: dict[str, Any] | None) -> NoReturn:
    try:
        os.setpgid(0, 0)
        rank.attach(log)
        rank.drop_to(account)
        os.umask(0o022)
        os.chdir("/")
        rank.reset_signals()
        os.execve(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(rank.CANNOT_RUN)


def _wait(gang: Gang, pid: int) -> int:
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        gang.check_stop()
        signal.sigtimedwait((signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM), STOP_CHECK_S)


def _end(pid: int) -> None:
    for number, patience in ((signal.SIGTERM, TERM_GRACE_S), (signal.SIGKILL, None)):
        rank.signal_group(pid, number)
        if patience is None:
            os.waitpid(pid, 0)
            return
        signal.sigtimedwait((signal.SIGCHLD,), patience)
        if os.waitpid(pid, os.WNOHANG)[0]:
            return


def _last_word(gang: Gang) -> str:
    """The last line that pip calls an error, else the last line at all."""
    with open(gang.folder.log(LOG), "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR:", "error:", "Error:"))]
    return (errors or lines or ["it said nothing"])[-1]


def discard(folder: str) -> None:
    """Remove a folder and all in it. By descriptors: what belongs to another account may change under our hands."""
    parent, _, name = folder.rpartition("/")
    fd = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _remove(name, fd)
    except FileNotFoundError:
        return
    finally:
        os.close(fd)


def _remove(name: str, parent: int) -> None:
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        for entry in list(os.scandir(fd)):
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.name, fd)
            else:
                os.unlink(entry.name, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)
