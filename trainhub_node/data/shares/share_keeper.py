"""Unmounts shares that no run uses any more, for the agent, also those that an earlier agent left."""

from __future__ import annotations

import logging
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from trainhub_node.data.shares import mount_table
from trainhub_node.data.shares.share_folder import (
    UNMOUNT_TIMEOUT_S,
    ShareFolder,
    release,
    try_lock,
    unmount_command,
)
from trainhub_node.settings import NodeSettings

log = logging.getLogger(__name__)
# The next run of the same person often comes soon.
IDLE_S = 600.0
# A child says that its attempt is over a moment before it ends, and a sweep may be at work.
LOCK_WAIT_S = 2.0
POLL_S = 0.05
MAX_THREADS = 16
IN_USE = "a run uses it, or a process that one has left; the next agent takes it over"


def shares_folder(settings: NodeSettings) -> str:
    """Returns the folder below which shares are mounted, as the kernel names it."""
    return os.path.realpath(settings.folder / "shares")


def unmount_idle(settings: NodeSettings) -> None:
    """Unmounts what has not been used for IDLE_S."""
    for folder in _mounted(settings):
        with _opened_lock(folder) as lock:
            if not try_lock(lock, alone=True):
                # The time of the lock is that of the last use.
                os.utime(lock)
            elif Path(folder.lock).stat().st_mtime <= time.time() - IDLE_S and (
                problem := _unmount(folder.mount)
            ):
                log.warning("%s stays mounted; the next sweep tries again: %s", folder.mount, problem)


def unmount_unused(settings: NodeSettings) -> None:
    """Unmounts what is not used now, and says what stays, and why. For an agent that stops: attempts that go
    on without it keep theirs."""
    # No share waits for the server or the users of another.
    with ThreadPoolExecutor(MAX_THREADS, "unmount") as threads:
        list(threads.map(_unmount_at_stop, _mounted(settings)))


def _unmount_at_stop(folder: ShareFolder) -> None:
    name = mount_table.find_mount(folder.mount)[1]
    try:
        problem = _unmount_if_free(folder)
    except OSError as error:
        problem = str(error)
    if problem:
        log.warning("%s stays mounted at %s: %s", name, folder.mount, problem)
    else:
        log.info("%s is unmounted", name)


def _mounted(settings: NodeSettings) -> list[ShareFolder]:
    root = shares_folder(settings)
    keys = os.listdir(root) if os.path.isdir(root) else []
    folders = [ShareFolder(root, key) for key in keys]
    return [folder for folder in folders if mount_table.is_mount_point(folder.mount)]


@contextmanager
def _opened_lock(folder: ShareFolder) -> Iterator[int]:
    lock = folder.open_lock()
    try:
        yield lock
    finally:
        release(lock)


def _unmount_if_free(folder: ShareFolder) -> str:
    """Unmounts the share as soon as nobody uses it. Returns why it stays mounted, "" if it does not."""
    until = time.monotonic() + LOCK_WAIT_S
    with _opened_lock(folder) as lock:
        while not try_lock(lock, alone=True):
            if time.monotonic() >= until:
                return IN_USE
            time.sleep(POLL_S)
        return _unmount(folder.mount) if mount_table.is_mount_point(folder.mount) else ""


def _unmount(path: str) -> str:
    """Returns why something is still mounted there, "" if nothing is."""
    command = unmount_command(path)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=UNMOUNT_TIMEOUT_S,
            check=False,
            text=True,
            errors="replace",
        )
        problem = done.stderr.strip() or (
            f"umount has ended with code {done.returncode}, and something is there"
        )
    except subprocess.TimeoutExpired:
        log.info("The server of what was mounted at %s does not answer", path)
        problem = f"umount did not end within {UNMOUNT_TIMEOUT_S:.0f} s"
    except OSError as error:
        problem = f"{command[0]} could not be started: {error.strerror}"
    return problem if mount_table.is_mount_point(path) else ""
