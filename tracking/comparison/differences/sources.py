"""What differs between two frozen sources, file by file, in bounded time and size."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from jobs.sources.source_files import UNREADABLE
from tracking.comparison.differences.hunks import Hunks, compare
from workspaces.stored_files import blobs

MOST_BYTES = 2**20
"""Of one file: a larger one is said to differ, not compared line by line."""
MOST_FILES = 500
MOST_LINES = 4000
MOST_LINES_OF_A_FILE = 1000
LONGEST_S = 4.0


@dataclass(frozen=True)
class File:
    """`kind`: added, removed, changed, renamed (from `was`). `why`: why no lines are shown; empty where they
    are."""

    path: str
    kind: str
    old_bytes: int | None = None
    new_bytes: int | None = None
    was: str = ""
    hunks: Hunks | None = None
    why: str = ""


@dataclass(frozen=True)
class SourceDifference:
    """`files` differ; `left_out` more do that are not listed. `alike`: how many do not. `gone`: which side is
    no longer kept."""

    files: tuple[File, ...] = ()
    alike: int = 0
    left_out: int = 0
    gone: str = ""

    @property
    def is_same(self) -> bool:
        return not self.files and not self.gone


@dataclass
class _Room:
    lines: int
    until: float


def compare_snapshots(old: str, new: str, *, until: float | None = None) -> SourceDifference:
    """By their hashes. `until`: on the monotonic clock; files that were not compared by then are only
    listed."""
    if old == new:
        return SourceDifference()
    with ExitStack() as stack:
        archives = []
        for side, sha256 in (("the base", old), ("this run", new)):
            try:
                archives.append(stack.enter_context(zipfile.ZipFile(blobs.path(sha256))))
            except (*UNREADABLE, blobs.BlobError):
                return SourceDifference(gone=side)
        return _compare(archives[0], archives[1], until or time.monotonic() + LONGEST_S)


def _compare(old: zipfile.ZipFile, new: zipfile.ZipFile, until: float) -> SourceDifference:
    before, after = _files(old), _files(new)
    # What a zip's directory says of two files tells whether they are alike: no byte is unpacked for that.
    alike = {path for path in before.keys() & after.keys() if _print(before[path]) == _print(after[path])}
    found = list(_listed(before, after, alike))
    room = _Room(MOST_LINES, until)
    files = [_with_lines(file, old, new, room) for file in found[:MOST_FILES]]
    return SourceDifference(tuple(files), len(alike), len(found) - len(files))


def _files(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {info.filename: info for info in archive.infolist() if not info.filename.endswith("/")}


def _print(info: zipfile.ZipInfo) -> tuple[int, int]:
    return info.CRC, info.file_size


def _listed(
    before: Mapping[str, zipfile.ZipInfo], after: Mapping[str, zipfile.ZipInfo], alike: set[str]
) -> Iterator[File]:
    """In the order of paths; a file that is only called otherwise is one, not two."""
    gone = {_print(info): path for path, info in before.items() if path not in after and info.file_size}
    was = {
        path: gone.pop(_print(info))
        for path, info in sorted(after.items())
        if path not in before and _print(info) in gone
    }
    for path in sorted({*before, *after} - alike - set(was.values())):
        here, there = before.get(path), after.get(path)
        if path in was:
            yield File(
                path,
                "renamed",
                before[was[path]].file_size,
                there.file_size if there else None,
                was=was[path],
            )
        else:
            kind = "changed" if here and there else "added" if there else "removed"
            yield File(path, kind, here.file_size if here else None, there.file_size if there else None)


def _with_lines(file: File, old: zipfile.ZipFile, new: zipfile.ZipFile, room: _Room) -> File:
    if file.kind == "renamed":
        return file
    if max(file.old_bytes or 0, file.new_bytes or 0) > MOST_BYTES:
        return replace(file, why="too large to compare line by line")
    if room.lines <= 0 or time.monotonic() > room.until:
        return replace(file, why="not compared: there is too much before it")
    try:
        before = "" if file.old_bytes is None else _text(old, file.path)
        after = "" if file.new_bytes is None else _text(new, file.path)
    except UNREADABLE:
        return replace(file, why="cannot be read any more")
    if before is None or after is None:
        return replace(file, why="not a text")
    hunks = compare(before, after, most=min(room.lines, MOST_LINES_OF_A_FILE))
    room.lines -= sum(len(hunk.lines) for hunk in hunks.hunks)
    return replace(file, hunks=hunks, why="" if hunks.hunks else "empty")


def _text(archive: zipfile.ZipFile, path: str) -> str | None:
    """None for what is no text."""
    data = archive.read(path)
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
