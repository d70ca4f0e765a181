"""The software of a run: an interpreter as it is, or a cached virtual environment, built under a lock.

An environment is whole when its marker is there, and the marker comes last. Whoever uses one holds its lock
shared, for as long as the processes live; building and throwing away need it alone.
"""

from __future__ import annotations

import fcntl
import os
import time

from trainhub_node import pip
from trainhub_node.gang import Gang, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARKER = "trainhub-complete"


def prepare(gang: Gang) -> str:
    """The run's interpreter, ready to use. Raises Refused, and Stopped when the end is asked for meanwhile."""
    spec = gang.order["environment"]
    python = spec["python"] or gang.terms["python"]
    if not _executable(python):
        raise Refused("environment", f"There is no Python at {python} on this node.")
    if spec["kind"] == "system":
        return str(python)
    if spec["kind"] != "venv":
        raise Refused("environment", f"This node cannot make environments of kind {spec['kind']!r}; upgrade its agent.")
    return _cached(gang, spec, python)


def _cached(gang: Gang, spec: dict[str, Any], python: str) -> str:
    folder = f"{gang.terms['environments']}/{gang.terms['digest']}"
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    gang.locks.append(lock)
    waiting = False
    while True:
        wanted = fcntl.LOCK_SH if _whole(folder) else fcntl.LOCK_EX
        if not _locked(lock, wanted):
            if not waiting:
                gang.note(f"Waiting for another run on this node that is building {spec['name']}.")
            waiting = True
            gang.check_stop()
            time.sleep(0.1)
        elif wanted == fcntl.LOCK_EX and not _whole(folder):
            _build(gang, spec, python, folder)
        elif wanted == fcntl.LOCK_SH and _whole(folder):
            os.utime(f"{folder}/{MARKER}", follow_symlinks=False)
            return f"{folder}/bin/python"


def _locked(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _build(gang: Gang, spec: dict[str, Any], python: str, folder: str) -> None:
    gang.note(f"Building the environment {spec['name']} {spec['version']}; see {pip.LOG}.")
    began = time.monotonic()
    pip.discard(folder)
    try:
        pip.build(gang, spec, python, folder)
    except BaseException:
        pip.discard(folder)
        raise
    os.close(os.open(f"{folder}/{MARKER}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
    gang.note(f"The environment was built in {time.monotonic() - began:.0f} s.")


def _whole(folder: str) -> bool:
    return os.path.exists(f"{folder}/{MARKER}") and _executable(f"{folder}/bin/python")


def _executable(path: str) -> bool:
    return bool(path) and os.path.isfile(path) and os.access(path, os.X_OK)


def hold_alone(lock: str) -> int | None:
    """For whoever wants to throw an environment away: its lock held alone, None while somebody uses it."""
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if _locked(fd, fcntl.LOCK_EX):
        return fd
    os.close(fd)
    return None
