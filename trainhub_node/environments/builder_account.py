"""The throwaway account that builds an environment, with `RUN_AS`.

Building runs the code of packages. That code must run neither as root nor as the account of the runs:
files of it could change other environments, or be changed by a run. So each build gets a user id that
belongs to no account of the machine and to no process. All its processes are killed before any of its
files is used."""

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
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Neither systemd nor distributions assign these to people, services or containers.
UIDS = range(60578, 61184)
# The last one builds nothing. It installs locked wheels, which runs no code of packages, and so it keeps a
# cache of them; see `trainhub_node.environments.uv_install`.
INSTALLER = UIDS[-1]
LOCKS = ".builders"
PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
KILL_TIMEOUT_S = 30.0
RETRY_S = 0.05

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def reserve_uid(environments: str, *, excluded: int) -> Iterator[int]:
    """Yields a user id for one build, which is also its group id, and reserves it until the block ends.

    `excluded`: the user id of the runs. Raises PreparationFailed if none is free."""
    locks = f"{environments}/{LOCKS}"
    os.makedirs(locks, mode=0o700, exist_ok=True)
    for uid in random.sample(UIDS[:-1], len(UIDS) - 1):
        if uid == excluded or _has_account(uid):
            continue
        path = f"{locks}/{uid}"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # The lock covers builds of this cache; builds of other caches are found by their processes.
            if _try_lock(lock, path) and not builder_processes(uid):
                yield uid
                os.unlink(path)
                return
        finally:
            os.close(lock)
    raise PreparationFailed(
        "environment", "No account is free to build the environment with; wait until other builds have ended."
    )


def is_installer_free(uids: range | None) -> bool:
    """Returns whether the number of the installer is no account of the machine and none of those that runs
    get (`uids`)."""
    return not _has_account(INSTALLER) and INSTALLER not in (uids or ())


def kill_abandoned(environments: str) -> list[int]:
    """Kills processes left by builds whose own process has died: nothing else would end them. Raises OSError.

    Returns the user ids whose processes do not end; no later build gets these."""
    locks = f"{environments}/{LOCKS}"
    surviving: list[int] = []
    if os.geteuid() != 0 or not os.path.isdir(locks):
        return surviving
    for name in os.listdir(locks):
        path = f"{locks}/{name}"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if name.isdecimal() and int(name) in UIDS and _try_lock(lock, path):
                kill_processes(int(name))
                os.unlink(path)
        except PreparationFailed:
            surviving.append(int(name))
        finally:
            os.close(lock)
    return surviving


def _try_lock(fd: int, path: str) -> bool:
    """Returns whether the lock was taken and its file still has that name: a finished build removes its own
    file."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.stat(path).st_ino == os.fstat(fd).st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def switch_to_builder(uid: int) -> None:
    """Turns this forked process into one of the builder. No program that it starts can gain more rights."""
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
    # The groups first: after `setresuid` this process may not change them any more.
    os.setgroups([uid])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def end_with_parent() -> None:
    """Lets the kernel kill this process when the thread that started it ends. A change of the account resets
    this."""
    if _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def kill_processes(uid: int) -> None:
    """Sends SIGKILL to all processes of the builder until none is left. Raises PreparationFailed."""
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while True:
        _kill_all(uid)
        if not builder_processes(uid):
            return
        # A process in an uninterruptible system call ends only when that call returns.
        if time.monotonic() > deadline:
            raise PreparationFailed(
                "environment",
                "Processes that building the environment has left behind do not end, even by SIGKILL.",
            )
        time.sleep(RETRY_S)


def _kill_all(uid: int) -> None:
    """Kills all processes of the user id with one `kill(-1)` from a process of that id, which no program
    escapes by forking."""
    pid = os.fork()
    if pid == 0:
        try:
            switch_to_builder(uid)
            # As root, `kill(-1)` would end every process of the machine, hence this check.
            if os.getresuid() == (uid, uid, uid):
                os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def builder_processes(uid: int) -> list[int]:
    """Returns the living processes that have this number among their four user ids."""
    # A process may have changed any of its four user ids.
    return [process.pid for process in proc.list_processes() if uid in proc.user_ids(process.pid)]
