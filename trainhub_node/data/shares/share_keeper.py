"""Unmounts shares that no run uses any more, for the agent, also those that an earlier agent left."""

from __future__ import annotations

import logging
import os
import subprocess
import time
from pathlib import Path

from trainhub_node.data.shares import mount_table
from trainhub_node.data.shares.share_folder import (
    UNMOUNT_TIMEOUT_S,
    ShareFolder,
    try_lock,
    unmount_command,
)
from trainhub_node.settings import NodeSettings

log = logging.getLogger(__name__)
# The next run of the same person often comes soon.
IDLE_S = 600.0


def shares_folder(settings: NodeSettings) -> str:
    """Returns the folder below which shares are mounted, as the kernel names it."""
    return os.path.realpath(settings.folder / "shares")


def unmount_idle(settings: NodeSettings) -> None:
    """Unmounts what has not been used for IDLE_S."""
    _unmount_all(settings, used_before=time.time() - IDLE_S)


def unmount_unused(settings: NodeSettings) -> None:
    """Unmounts what is not used now. Attempts that go on without the agent keep theirs."""
    _unmount_all(settings, used_before=time.time())


def _unmount_all(settings: NodeSettings, *, used_before: float) -> None:
    root = shares_folder(settings)
    if not os.path.isdir(root):
        return
    for key in os.listdir(root):
        folder = ShareFolder(root, key)
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
    command = unmount_command(path)
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, timeout=UNMOUNT_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        log.info("The server of what was mounted at %s does not answer", path)
    except OSError as error:
        log.warning("%s could not be started: %s", command[0], error)
    if mount_table.is_mount_point(path):
        log.warning("%s could not be unmounted; the next sweep tries again", path)
