"""A folder of the hub's machine as a source. Links that lead out of it and special files are rejected."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from jobs.sources.ignore_rules import IgnoreRules, load_rules
from jobs.sources.source_files import (
    SnapshotError,
    SourceEntry,
    check_all,
    check_file_count,
    check_path,
    read_chunks,
)


@dataclass(frozen=True)
class SourceTree:
    """The files of a source, and the number of files and folders that were ignored."""

    entries: tuple[SourceEntry, ...]
    ignored_count: int
    rules: IgnoreRules

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(entry.path for entry in self.entries)


def read_folder(folder: Path) -> SourceTree:
    """Returns the files of a folder. Raises SnapshotError for files that cannot be part of a snapshot."""
    root = folder.resolve()
    if not root.is_dir():
        raise SnapshotError(f"{folder} is not a folder on the hub's machine")
    ignored = load_rules(partial(_content, root))
    entries: list[SourceEntry] = []
    ignored_count = 0
    for parent, folders, files in os.walk(root, onerror=_unreadable):
        below = Path(parent).relative_to(root)
        folders_to_read = []
        for name in sorted(folders):
            path = (below / name).as_posix()
            # The slash marks a folder: a pattern such as `data/` does not match a file of that name.
            if ignored.is_ignored(f"{path}/"):
                ignored_count += 1
            elif (root / path).is_symlink():
                raise SnapshotError(
                    f"{path!r} is a link to a folder; copy the folder there, or leave it out in "
                    ".trainhubignore"
                )
            else:
                folders_to_read.append(name)
        # os.walk reads this list afterwards and enters only the folders that remain in it.
        folders[:] = folders_to_read
        for name in sorted(files):
            path = (below / name).as_posix()
            if ignored.is_ignored(path):
                ignored_count += 1
                continue
            entries.append(_entry(root, path))
            # Checked inside the loop, so that a wrong folder such as `/` is rejected after the first files.
            check_file_count(len(entries))
    check_all(entries)
    return SourceTree(tuple(entries), ignored_count, ignored)


def _entry(root: Path, path: str) -> SourceEntry:
    check_path(path)
    full = root / path
    try:
        real = full.resolve()
    except (RuntimeError, OSError) as error:
        raise SnapshotError(f"{path!r} is a link that leads back to itself; remove it") from error
    if not real.is_relative_to(root):
        raise SnapshotError(
            f"{path!r} is a link that leads out of the folder; copy the file there, or leave it out"
        )
    if not real.exists():
        raise SnapshotError(f"{path!r} is a link to nothing; remove it, or leave it out in .trainhubignore")
    info = real.stat()
    if not stat.S_ISREG(info.st_mode):
        raise SnapshotError(f"{path!r} is not a regular file; leave it out in .trainhubignore")
    return SourceEntry(
        path=path, size=info.st_size, executable=bool(info.st_mode & 0o100), open=partial(_open, real)
    )


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _content(root: Path, name: str) -> Iterator[bytes] | None:
    path = root / name
    return (
        read_chunks(SourceEntry(name, 0, executable=False, open=partial(_open, path)))
        if path.is_file()
        else None
    )


def _unreadable(error: OSError) -> None:
    raise SnapshotError(
        f"the folder {error.filename!r} cannot be read ({error.strerror}); allow it, or move it away"
    ) from error
