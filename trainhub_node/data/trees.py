"""What a run sees of the cache: a folder of its own with the files of an input."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.errors import DataError
from trainhub_node.data.remote_file import RemoteFile
from trainhub_node.untrusted import removal

UNFINISHED = ".unfinished"
BLOCK = 1024 * 1024
# Of one file, on most file systems; then a copy is folders.
TOO_MANY_LINKS = errno.EMLINK


def build(
    cache: DataCache, target: str, files: Iterable[RemoteFile], *, copies: bool, group: int | None
) -> None:
    """Makes the folder `target` with these files, or nothing. `copies`: the run could change what is linked,
    because it has the agent's account and no namespaces. `group`: that of the run's account, which alone can
    enter; None for the agent's. Raises DataError for names that the disk does not tell apart, and OSError."""
    aside, attempt = f"{target}{UNFINISHED}", os.path.dirname(target)
    os.makedirs(attempt, mode=0o700, exist_ok=True)
    for path in (aside, target):
        # Of an earlier child of this attempt.
        removal.remove_tree(path)
    if group is not None:
        os.chown(attempt, -1, group)
        os.chmod(attempt, 0o750)  # noqa: S103 - the group is the run's own
    os.mkdir(aside)
    folders = {aside}
    for file in files:
        path = f"{aside}/{file.path}"
        _make_parents(os.path.dirname(path), folders)
        try:
            _place(cache.name(file.identity), path, copies=copies)
        except FileExistsError as error:
            raise DataError(
                f"The disk of this node takes {file.path} and another file for the same, because they differ "
                "only in capital letters or accents: rename one, or ask for a cache on another file system."
            ) from error
    os.rename(aside, target)


def _make_parents(folder: str, folders: set[str]) -> None:
    if folder in folders:
        return
    _make_parents(os.path.dirname(folder), folders)
    os.mkdir(folder)
    folders.add(folder)


def _place(source: str, path: str, *, copies: bool) -> None:
    if not copies:
        try:
            os.link(source, path)
        except OSError as error:
            if error.errno != TOO_MANY_LINKS:
                raise
        else:
            return
    with open(source, "rb") as original, open(path, "xb") as copy:
        while os.copy_file_range(original.fileno(), copy.fileno(), BLOCK * 64):
            pass
    shutil.copystat(source, path)
