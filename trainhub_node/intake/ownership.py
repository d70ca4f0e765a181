"""Checks that this agent's own account made a file or folder of an attempt.

The agent starts what an order says, possibly as root. So it accepts an order only if no other account can
have written it."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from trainhub_node.rundir import RunDir

log = logging.getLogger(__name__)
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class ForeignFile(Exception):
    """A path that another account may have made or may change; the message says which and why."""


def require_folder(path: str) -> None:
    """Raises ForeignFile unless `path` is a real folder that only this account may change."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise ForeignFile(f"{path} is not a folder")
    _require_ownership(path, status)


def has_order(folder: RunDir) -> bool:
    """Returns whether the attempt has an order that this agent wrote. Raises ForeignFile if another
    account may have written it."""
    try:
        require_folder(folder.path)
        status = os.lstat(folder.order)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):
        raise ForeignFile(f"{folder.order} is not a regular file")
    _require_ownership(folder.order, status)
    return True


def remove_claim(folder: RunDir) -> None:
    """Removes the files of a claim that the hub rejected, and nothing else that may be in the folder."""
    for name in ("claim.json", "terms.json"):
        # Also temporary files of an agent that was killed while it wrote.
        for path in (Path(folder.path, name), *Path(folder.path).glob(f"{name}.*")):
            path.unlink(missing_ok=True)
    try:
        for folder_path in (folder.logs, folder.ranks, folder.path):
            if Path(folder_path).exists():
                Path(folder_path).rmdir()
    except OSError as error:
        log.warning(
            "%s stays, because it holds files that no claim has made (%s)", folder.path, error.strerror
        )


def _require_ownership(path: str, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise ForeignFile(
            f"{path} belongs to account {status.st_uid}, not to the agent's account {os.geteuid()}"
        )
    if status.st_mode & WRITABLE_BY_OTHERS:
        raise ForeignFile(f"{path} is writable by other accounts (mode {stat.S_IMODE(status.st_mode):o})")
