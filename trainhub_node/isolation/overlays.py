"""Folders that a run may change without changing what it shares with others: an overlay of the kernel keeps
what it writes apart. Scripts write indexes and caches beside their data.

Linux 5.11 lets accounts that are not root mount overlays in their namespaces, and knows `userxattr`."""

from __future__ import annotations

import os

from trainhub_node.isolation import syscalls
from trainhub_node.isolation.syscalls import MS_NODEV, MS_NOSUID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

KIND = "overlay"
# The kernel needs both on one file system.
UPPER, WORK = "upper", "work"


def make_folders(changes: str, account: Mapping[str, int] | None) -> None:
    """Makes the folders of the changes, which only the overlay shows to the run. `account`: whose the
    overlay is, None for this process's own. Raises OSError."""
    os.makedirs(changes, mode=0o700, exist_ok=True)
    for name in (UPPER, WORK):
        os.makedirs(f"{changes}/{name}", mode=0o700, exist_ok=True)
    if account is not None:
        os.chown(f"{changes}/{UPPER}", account["uid"], account["gid"])


def mount_overlay(path: str, changes: str) -> bool:
    """Covers the folder at `path` by an overlay. Returns whether this kernel and this file system can do
    that; if not, nothing has changed."""
    folders = {
        "lowerdir": path,
        "upperdir": f"{changes}/{UPPER}",
        "workdir": f"{changes}/{WORK}",
    }
    # By descriptors: a path may contain what separates options.
    opened = {
        name: os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for name, folder in folders.items()
    }
    options = [f"{name}=/proc/self/fd/{descriptor}" for name, descriptor in opened.items()]
    try:
        syscalls.mount(KIND, path, KIND, MS_NOSUID | MS_NODEV, ",".join([*options, "userxattr"]))
    except OSError:
        return False
    finally:
        for descriptor in opened.values():
            os.close(descriptor)
    return True


def has_overlay(process: int, path: str) -> bool:
    """Returns whether an overlay is mounted at `path` for the process."""
    with open(f"/proc/{process}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        mounts = [line.split(" - ") for line in file]
    return any(first.split()[4] == path and last.startswith(f"{KIND} ") for first, last in mounts)
