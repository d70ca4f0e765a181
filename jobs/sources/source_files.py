"""The files of a source from a folder or a zip: checks their names and reads their contents."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from django.conf import settings

from trainhub_launch.errors import SpecError

DRIVE = re.compile(r"[A-Za-z]:")
MAX_PATH_BYTES = 1000
FIELD = "source"
CHUNK_BYTES = 1024 * 1024
# Exceptions from opening or reading an entry of a damaged or hostile container.
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)


class SnapshotError(SpecError):
    """The source cannot become a snapshot; the message names the entry and the remedy."""

    def __init__(self, message: str, field: str = FIELD) -> None:
        super().__init__(field, message)


@dataclass(frozen=True)
class SourceEntry:
    """A file of a source. `size`: as its container declares it. `open` returns a stream of its bytes."""

    path: str
    size: int
    executable: bool
    open: Callable[[], IO[bytes]]


def read_chunks(entry: SourceEntry) -> Iterator[bytes]:
    """Yields the bytes of an entry in chunks. Raises SnapshotError if they cannot be read."""
    try:
        with entry.open() as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except UNREADABLE as error:
        why = str(error) or "it ends too early"
        raise SnapshotError(f"{entry.path!r} cannot be read ({why}); pack the folder again") from error


def check_path(path: str) -> str:
    """Returns `path`. Raises SnapshotError unless it stays inside the target folder on any machine."""
    label = repr(path[:200])
    if path.startswith("/") or DRIVE.match(path):
        raise SnapshotError(f"{label} is an absolute path; pack the folder's content with relative paths")
    if "\\" in path:
        raise SnapshotError(f"{label} contains a backslash; pack the folder with '/' between its parts")
    if not path.isprintable():
        raise SnapshotError(f"{label} contains characters that cannot be shown; rename it")
    parts = path.split("/")
    if ".." in parts:
        raise SnapshotError(f"{label} leads out of the folder; pack it without '..'")
    if "" in parts or "." in parts:
        raise SnapshotError(f"{label} is not a plain relative path; pack the folder again")
    if len(os.fsencode(path)) > MAX_PATH_BYTES or any(len(os.fsencode(part)) > 255 for part in parts):
        raise SnapshotError(
            f"{label}… is too long; shorten its path to {MAX_PATH_BYTES} bytes, each part to 255"
        )
    return path


def check_all(entries: Iterable[SourceEntry]) -> None:
    """Raises SnapshotError for duplicate names, a name that is both file and folder, or exceeded limits."""
    paths: set[str] = set()
    folders: set[str] = set()
    total = 0
    for entry in entries:
        if entry.path in paths:
            raise SnapshotError(f"{entry.path!r} is in it twice; pack the folder again")
        paths.add(entry.path)
        parts = entry.path.split("/")
        folders.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
        total += entry.size
    both = sorted(paths & folders)
    if both:
        raise SnapshotError(f"{both[0]!r} is both a file and a folder; pack the folder again")
    check_file_count(len(paths))
    if total > settings.MAX_SNAPSHOT_BYTES:
        raise SnapshotError(
            f"it has {total / 2**20:.0f} MiB unpacked, and {settings.MAX_SNAPSHOT_BYTES / 2**20:.0f} MiB "
            "are allowed; "
            "leave data out with a .trainhubignore file"
        )


def check_file_count(files: int) -> None:
    if files > settings.MAX_SNAPSHOT_FILES:
        raise SnapshotError(
            f"it has {files} files, and {settings.MAX_SNAPSHOT_FILES} are allowed; leave some out with a "
            ".trainhubignore file"
        )
