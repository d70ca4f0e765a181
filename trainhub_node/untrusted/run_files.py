"""Opens files in a training script's own folder, where any name may be a link or a device."""

from __future__ import annotations

import hashlib
import os

from trainhub_node.untrusted import beneath
from trainhub_node.untrusted.beneath import OutsideFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def open_run_file(root: str, path: str, owner: int | None = None) -> int:
    """Returns a descriptor for reading the regular file at `path` below `root`.

    `owner`: the account of the ranks if it is not the agent's; other accounts' files (hard links) are
    refused. Raises OutsideFolder where links lead out of `root`, and OSError."""
    folder = beneath.open_root(root)
    try:
        fd = beneath.open_regular(folder, _without_absolute_link(root, folder, path), follow_links=True)
    finally:
        os.close(folder)
    # Anybody may hard-link a file of another account into a folder, and the agent may be root.
    if owner not in (None, os.fstat(fd).st_uid):
        os.close(fd)
        raise OutsideFolder(f"{path} is not a file of the run")
    return fd


def _without_absolute_link(root: str, folder: int, path: str) -> str:
    """Returns the link's target relative to `root` if `path` is an absolute link into `root`, else `path`.

    Scripts often make such links to their last checkpoint."""
    entry = beneath.open_entry(folder, os.path.dirname(path) or ".", follow_links=False)
    try:
        target = os.readlink(os.path.basename(path), dir_fd=entry)
    except OSError:
        return path  # no link, or no entry at all, which the caller will notice
    finally:
        os.close(entry)
    real = f"{os.path.realpath(root)}/"
    return target.removeprefix(real) if target.startswith(real) else path


def version_of_file(name: str, status: os.stat_result) -> str:
    """Returns what changes with every change of the file."""
    return version_of_files([(name, status)])


def version_of_files(files: Iterable[tuple[str, os.stat_result]]) -> str:
    """Returns what changes with every change of one of the files, given by their names."""
    versions = sorted((name, status.st_ino, status.st_size, status.st_mtime_ns) for name, status in files)
    return hashlib.sha256(repr(versions).encode()).hexdigest()[:32]
