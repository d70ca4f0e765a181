"""Compares two source snapshots file by file, with limits on time and size."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from jobs.sources.source_files import UNREADABLE
from tracking.comparison.differences.hunks import TextDiff, diff_texts
from workspaces.stored_files import blob_cache, blobs

# Larger files are reported as different without a comparison of their lines.
MAX_FILE_BYTES = 2**20
MAX_FILES = 500
MAX_LINES = 4000
MAX_FILE_LINES = 1000
MAX_COMPARE_S = 4.0


@dataclass(frozen=True)
class FileDifference:
    """`kind` is added, removed, changed or renamed (from `renamed_from`). `why` is the reason for missing
    `hunks`, else empty."""

    path: str
    kind: str
    old_bytes: int | None = None
    new_bytes: int | None = None
    renamed_from: str = ""
    hunks: TextDiff | None = None
    why: str = ""


@dataclass(frozen=True)
class SourceDifference:
    """`files` differ, and `omitted` counts further ones that are not listed; `alike` counts the equal ones.
    `missing_side` names the side whose snapshot was deleted."""

    files: tuple[FileDifference, ...] = ()
    alike: int = 0
    omitted: int = 0
    missing_side: str = ""

    @property
    def is_same(self) -> bool:
        return not self.files and not self.missing_side


@dataclass
class _Budget:
    lines: int
    deadline: float


def compare_snapshots(old: str, new: str, *, deadline: float | None = None) -> SourceDifference:
    """Compares the snapshots with these SHA-256 hashes. `deadline` is a time of the monotonic clock; files
    that are not compared by then are only listed."""
    if old == new:
        return SourceDifference()
    with ExitStack() as stack:
        archives = []
        for side, sha256 in (("the base", old), ("this run", new)):
            try:
                archives.append(stack.enter_context(zipfile.ZipFile(blob_cache.local_path(sha256))))
            except (*UNREADABLE, blobs.BlobError):
                return SourceDifference(missing_side=side)
        return _compare(archives[0], archives[1], deadline or time.monotonic() + MAX_COMPARE_S)


def _compare(old: zipfile.ZipFile, new: zipfile.ZipFile, deadline: float) -> SourceDifference:
    before, after = _files(old), _files(new)
    # CRC and size in the zip directories show which files are equal, so that nothing is unpacked for those.
    alike = {
        path
        for path in before.keys() & after.keys()
        if _fingerprint(before[path]) == _fingerprint(after[path])
    }
    changed = list(_changed_files(before, after, alike))
    budget = _Budget(MAX_LINES, deadline)
    files = [_with_lines(file, old, new, budget) for file in changed[:MAX_FILES]]
    return SourceDifference(tuple(files), len(alike), len(changed) - len(files))


def _files(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {info.filename: info for info in archive.infolist() if not info.filename.endswith("/")}


def _fingerprint(info: zipfile.ZipInfo) -> tuple[int, int]:
    return info.CRC, info.file_size


def _changed_files(
    before: Mapping[str, zipfile.ZipInfo], after: Mapping[str, zipfile.ZipInfo], alike: set[str]
) -> Iterator[FileDifference]:
    """Yields the changed files in the order of their paths; a renamed file is one entry."""
    # Empty files are left out: equal content does not show that an empty file was renamed.
    removed = {
        _fingerprint(info): path for path, info in before.items() if path not in after and info.file_size
    }
    renamed_from = {
        # `pop` lets each removed file be the origin of only one added file.
        path: removed.pop(_fingerprint(info))
        for path, info in sorted(after.items())
        if path not in before and _fingerprint(info) in removed
    }
    for path in sorted({*before, *after} - alike - set(renamed_from.values())):
        old_info, new_info = before.get(path), after.get(path)
        if path in renamed_from:
            yield FileDifference(
                path,
                "renamed",
                before[renamed_from[path]].file_size,
                new_info.file_size if new_info else None,
                renamed_from=renamed_from[path],
            )
        else:
            kind = "changed" if old_info and new_info else "added" if new_info else "removed"
            yield FileDifference(
                path, kind, old_info.file_size if old_info else None, new_info.file_size if new_info else None
            )


def _with_lines(
    file: FileDifference, old: zipfile.ZipFile, new: zipfile.ZipFile, budget: _Budget
) -> FileDifference:
    if file.kind == "renamed":
        return file
    if max(file.old_bytes or 0, file.new_bytes or 0) > MAX_FILE_BYTES:
        return replace(file, why="too large to compare line by line")
    if budget.lines <= 0 or time.monotonic() > budget.deadline:
        return replace(file, why="not compared: there is too much before it")
    try:
        before = "" if file.old_bytes is None else _text(old, file.path)
        after = "" if file.new_bytes is None else _text(new, file.path)
    except UNREADABLE:
        return replace(file, why="can no longer be read")
    if before is None or after is None:
        return replace(file, why="not a text")
    hunks = diff_texts(before, after, max_lines=min(budget.lines, MAX_FILE_LINES))
    budget.lines -= sum(len(hunk.lines) for hunk in hunks.hunks)
    return replace(file, hunks=hunks, why="" if hunks.hunks else "empty")


def _text(archive: zipfile.ZipFile, path: str) -> str | None:
    """Returns the file's text, or None if it is not UTF-8."""
    data = archive.read(path)
    # NUL is valid UTF-8, but a file that contains it is treated as binary.
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
