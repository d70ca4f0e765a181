"""Unmounts shares that no run uses any more, for the agent, also those that an earlier agent left."""

from __future__ import annotations

import logging
import os
import subprocess
import time
from pathlib import Path

from trainhub_node.data.shares import mount_table
from trainhub_node.data.shares.share_folder import ShareFolder, try_lock, unmount_command
from trainhub_node.settings import NodeSettings

log = logging.getLogger(__name__)
# The next run of the same person often comes soon.
IDLE_S = 600.0
UNMOUNT_TIMEOUT_S = 5.0


def shares_folder(settings: NodeSettings) -> str:
    """Returns the folder below which shares are mounted, as the kernel names it."""
    return os.path.realpath(settings.folder / "shares")


class ShareKeeper:
    def __init__(self, settings: NodeSettings) -> None:
        self._root = shares_folder(settings)

    def sweep(self) -> None:
        """Unmounts what has not been used for IDLE_S."""
        self._unmount(time.time() - IDLE_S)

    def close(self) -> None:
        """Unmounts what is not used now. Attempts that go on without the agent keep theirs."""
        self._unmount(time.time())

    def _unmount(self, used_before: float) -> None:
        if not os.path.isdir(self._root):
            return
        for key in os.listdir(self._root):
            folder = ShareFolder(self._root, key)
            if mount_table.is_mount_point(folder.mount):
                _unmount_unused(folder, used_before)


def _unmount_unused(folder: ShareFolder, used_before: float) -> None:
    lock = folder.open_lock()
    try:
        if not try_lock(lock, alone=True):
            # The time of the lock is that of the last use.
            os.utime(lock)
        elif Path(folder.lock).stat().st_mtime <= used_before:
            _unmount(folder.mount)
    finally:
        os.close(lock)


def _unmount(path: str) -> None:
    """In a process of its own: the kernel may tell the server, which may be gone."""
    try:
        done = subprocess.run(
            unmount_command(path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=UNMOUNT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("%s could not be unmounted: %s", path, error)
        return
    if done.returncode:
        log.warning("%s could not be unmounted: %s", path, done.stderr.strip())
