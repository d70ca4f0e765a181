"""Lists a tree that another account may change at the same time; every folder is opened beneath the root."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainhub_node.untrusted.beneath import open_folder


@dataclass(frozen=True)
class ListedFolder:
    """`path` is relative to the root of the walk. `files`: every name except folders, also pipes and
    `links`."""

    path: str
    files: tuple[str, ...]
    links: frozenset[str]


def walk_beneath(
    root: int, top: str, *, max_path: int, on_error: Callable[[str, OSError], None] | None = None
) -> Iterator[ListedFolder]:
    """Yields the folder `top` below `root` and all folders in it, sorted, except those whose path is too
    long.

    One folder is open at a time, at any depth."""
    pending = [top]
    while pending:
        path = pending.pop()
        try:
            entries = _entries(root, path)
        except OSError as error:
            if on_error is not None:
                on_error(path, error)
            continue
        folders = sorted(
            (entry.name for entry in entries if entry.is_dir(follow_symlinks=False)), reverse=True
        )
        for name in folders:
            if len(path) + len(name) < max_path:
                pending.append(f"{path}/{name}")
            elif on_error is not None:
                on_error(f"{path}/{name}", OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG)))
        files = sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False))
        yield ListedFolder(
            path, tuple(files), frozenset(entry.name for entry in entries if entry.is_symlink())
        )


def _entries(root: int, path: str) -> list[os.DirEntry[str]]:
    fd = open_folder(root, path)
    try:
        with os.scandir(fd) as entries:
            result = list(entries)
            for entry in result:
                # Called while the folder is open: where the file system does not report an entry's type,
                # is_dir looks it up relative to the folder.
                entry.is_dir(follow_symlinks=False)
    finally:
        os.close(fd)
    return result
