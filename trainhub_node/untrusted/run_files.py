"""Opening files of a training script's own folder, where every name may be a trap."""

from __future__ import annotations

import os

from trainhub_node.untrusted import beneath
from trainhub_node.untrusted.beneath import OutsideFolder

__all__ = ["Outside", "open_inside"]


def open_run_file(root: str, path: str, owner: int | None = None) -> int:
    """A descriptor to read the regular file at `path` below `root`. Raises Outside where links lead out of
    `root`, and OSError.

    `owner`: the account of the ranks where it is another than ours; files of others (hard links) are refused.
    """
    folder = beneath.open_root(root)
    try:
        fd = beneath.open_regular(folder, _without_absolute_link(root, folder, path), follow_links=True)
    finally:
        os.close(folder)
    if owner not in (None, os.fstat(fd).st_uid):
        os.close(fd)
        raise OutsideFolder(f"{path} is not a file of the run")
    return fd


def _without_absolute_link(root: str, folder: int, path: str) -> str:
    """Where `path` is an absolute link into `root` (scripts like to make such ones to their last checkpoint):
    its target."""
    entry = beneath.open_entry(folder, os.path.dirname(path) or ".", follow_links=False)
    try:
        target = os.readlink(os.path.basename(path), dir_fd=entry)
    except OSError:
        return path  # no link, or nothing at all, which the caller will see
    finally:
        os.close(entry)
    real = f"{os.path.realpath(root)}/"
    return target.removeprefix(real) if target.startswith(real) else path
