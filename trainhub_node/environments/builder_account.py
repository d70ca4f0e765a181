"""The throwaway account that an environment is built as, under `RUN_AS`.

Building runs the code of packages. It must neither be root's nor that of the runs: what it leaves behind
could change other environments, or be changed by a run. So each build gets a number that belongs to no
account of the machine and that no process has. All its processes are killed before anything that they made is
used."""

from __future__ import annotations

import ctypes
import fcntl
import os
import pwd
import random
import signal
import time
from contextlib import contextmanager

from trainhub_node import proc
from trainhub_node.supervisor.gang import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBERS = range(60578, 61184)
"""Neither systemd nor distributions give these to people, services or containers."""
LOCKS = ".builders"
PR_SET_NO_NEW_PRIVS = 38
STUBBORN_S = 30.0
AGAIN_S = 0.05

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def reserved(environments: str, *, not_this: int) -> Iterator[int]:
    """A number for one build, used as user and as group. Raises Refused. `not_this`: the account of the
    runs."""
    locks = f"{environments}/{LOCKS}"
    os.makedirs(locks, mode=0o700, exist_ok=True)
    for number in random.sample(NUMBERS, len(NUMBERS)):
        if number == not_this or _has_account(number):
            continue
        path = f"{locks}/{number}"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # The lock is for builds of this cache; another cache of this machine is seen by its processes.
            if _locked(lock, path) and not processes_of(number):
                yield number
                os.unlink(path)
                return
        finally:
            os.close(lock)
    raise Refused(
        "environment", "No account is free to build the environment with; wait until other builds have ended."
    )


def end_abandoned(environments: str) -> list[int]:
    """Ends what builds have left running whose own process was killed: nobody else would. Raises OSError.

    Returns the numbers whose processes do not end; no later build gets these.
    """
    locks = f"{environments}/{LOCKS}"
    stubborn: list[int] = []
    if os.geteuid() != 0 or not os.path.isdir(locks):
        return stubborn
    for name in os.listdir(locks):
        path = f"{locks}/{name}"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if name.isdecimal() and int(name) in NUMBERS and _locked(lock, path):
                end_processes(int(name))
                os.unlink(path)
        except Refused:
            stubborn.append(int(name))
        finally:
            os.close(lock)
    return stubborn


def _locked(fd: int, path: str) -> bool:
    """Whether the lock is had, and is still the one at that name: a build that is over removes its own."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.stat(path).st_ino == os.fstat(fd).st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def _has_account(number: int) -> bool:
    try:
        pwd.getpwuid(number)
    except KeyError:
        return False
    return True


def become(number: int) -> None:
    """Turns this process, forked for that, into one of the builder; no program that it starts can gain more
    rights."""
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
    os.setgroups([number])
    os.setresgid(number, number, number)
    os.setresuid(number, number, number)


def end_processes(number: int) -> None:
    """SIGKILL to all processes of the builder, wherever they went, until none is left. Raises Refused."""
    give_up = time.monotonic() + STUBBORN_S
    while True:
        _kill_all(number)
        if not processes_of(number):
            return
        if time.monotonic() > give_up:
            raise Refused(
                "environment",
                "Processes that building the environment has left behind do not end, even by SIGKILL.",
            )
        time.sleep(AGAIN_S)


def _kill_all(number: int) -> None:
    """In one step for all of them, which no program escapes by making new processes: only the builder itself
    may do that."""
    pid = os.fork()
    if pid == 0:
        try:
            become(number)
            if os.getresuid() == (number, number, number):
                os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def processes_of(number: int) -> list[int]:
    """Processes that are not dead and have this number as one of their four user ids."""
    return [one.pid for one in proc.processes() if str(number).encode() in _user_ids(one.pid)]


def _user_ids(pid: int) -> list[bytes]:
    for line in (proc.read(f"/proc/{pid}/status") or b"").splitlines():
        if line.startswith(b"Uid:"):
            return line.split()[1:]
    return []
