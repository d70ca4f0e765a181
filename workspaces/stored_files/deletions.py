"""Holds deletions of stored files while a backup runs, so that no file goes which the copied database names.

Two files in DATA_DIR are locked with flock, which works between threads and processes and ends with them. A
backup closes the gate, and then waits for the deletions that have begun. It could not wait for a single lock:
those who delete share it, and a new one could always begin before the last one ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

GATE, WORK = "backup.lock", "deletions.lock"
# Those who delete hold the gate for an instant only; whoever holds it longer is a backup.
GATE_S = 3.0
PAUSE_S = 0.05


class DeletionsBusy(Exception):
    """Deletions cannot be held: another backup holds them, or one takes too long. The message says which."""


@contextmanager
def allowed() -> Iterator[bool]:
    """Yields whether stored files may be deleted now; a backup that begins meanwhile waits for the end of the
    block. False while a backup runs: delete later."""
    with _lock_file(GATE) as gate, _lock_file(WORK) as work:
        if _lock(gate, fcntl.LOCK_SH):
            # Nobody has it alone while the gate is open.
            fcntl.flock(work, fcntl.LOCK_SH)
            fcntl.flock(gate, fcntl.LOCK_UN)
            yield True
        else:
            yield False


@contextmanager
def held(max_s: float) -> Iterator[None]:
    """Allows no deletions within the block. Waits at most `max_s` seconds for those that have begun. Raises
    DeletionsBusy."""
    with _lock_file(GATE) as gate:
        if not _lock_within(gate, GATE_S):
            holder = os.pread(gate, 32, 0).decode(errors="replace").strip()
            raise DeletionsBusy(f"another backup of this hub is running (process {holder})")
        os.ftruncate(gate, 0)
        os.pwrite(gate, str(os.getpid()).encode(), 0)
        with _lock_file(WORK) as work:
            if not _lock_within(work, max_s):
                raise DeletionsBusy(f"the hub has been deleting files for more than {max_s:.0f} s")
        yield


@contextmanager
def _lock_file(name: str) -> Iterator[int]:
    folder = Path(settings.DATA_DIR)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        # Closing it also ends the lock.
        os.close(descriptor)


def _lock_within(descriptor: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not _lock(descriptor, fcntl.LOCK_EX):
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_S)
    return True


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
