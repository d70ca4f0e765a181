"""Whether a file or folder of an attempt was made by this agent's own account.

The agent starts what an order says, possibly as root. So it believes an order only where nobody else can have
written it."""

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
    """Raise ForeignFile unless `path` is a real folder that only this account may change."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise ForeignFile(f"{path} is not a folder")
    _require_ownership(path, status)


def has_order(folder: RunDir) -> bool:
    """Whether the attempt has an order that this agent wrote. Raises ForeignFile for one that somebody else
    may have written."""
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
    """Remove what a claim has made for an attempt that the hub did not give to this node, and nothing else
    that may lie there."""
    for name in ("claim.json", "terms.json"):
        # With the files that an agent which was killed while it wrote has left beside them.
        for path in (Path(folder.path, name), *Path(folder.path).glob(f"{name}.*")):
            path.unlink(missing_ok=True)
    try:
        for folder_path in (folder.logs, folder.ranks, folder.path):
            if Path(folder_path).exists():
                Path(folder_path).rmdir()
    except OSError as error:
        log.warning("%s is left, for it holds what no claim has made (%s)", folder.path, error.strerror)


def _require_ownership(path: str, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise ForeignFile(
            f"{path} belongs to account {status.st_uid}, not to the agent's account {os.geteuid()}"
        )
    if status.st_mode & WRITABLE_BY_OTHERS:
        raise ForeignFile(f"{path} is writable by other accounts (mode {stat.S_IMODE(status.st_mode):o})")
