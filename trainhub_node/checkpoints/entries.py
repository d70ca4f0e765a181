"""What stands in the folder of checkpoints of an attempt: its entries, the files of each, and by which sign
an entry is complete. The folder belongs to the run, which may change anything in it at any time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainhub_launch.data.checkpoint_order import MAX_CHECKPOINT_FILES, MAX_CHECKPOINT_NAME
from trainhub_launch.states import CheckpointSign
from trainhub_node.untrusted import beneath
from trainhub_node.untrusted.run_files import version_of_files

MAX_PATH = 900
MAX_ENTRIES = 1000
# Names under which programs write what is not complete yet.
UNFINISHED_STARTS, UNFINISHED_ENDS = (".", "tmp"), (".tmp", ".part", ".incomplete")
# DeepSpeed writes the name of a checkpoint into it once all ranks have saved theirs. It is no part of the
# checkpoint: by the time that one is delivered, it may name the next. The hub writes it anew.
LATEST, MAX_LATEST_BYTES = "latest", 4096
METADATA, MARKER = ".metadata", ".complete"

# Name of an entry -> the inode with which it got this name by a rename, and when that was noticed (Unix
# seconds).
Renames = Mapping[str, tuple[int, float]]


@dataclass(frozen=True)
class Entry:
    """`files`: their paths below the folder of checkpoints, sorted. `version` changes with every change of a
    file; `changed_at`: when that was (Unix seconds). `wrong`: why it cannot be kept, as a sentence."""

    name: str
    files: tuple[str, ...]
    version: str
    changed_at: float
    size: int
    sign: CheckpointSign = CheckpointSign.NONE
    wrong: str = ""


@dataclass(frozen=True)
class _File:
    path: str
    status: os.stat_result


def list_entries(work: str, folder: str, renames: Renames) -> list[Entry]:
    """Returns the entries of `folder` below the working folder `work`, the oldest first; none if there is no
    such folder. What is still being written, by its name, is left out."""
    try:
        root = beneath.open_root(work)
    except OSError:
        return []
    try:
        entries = [_read(root, folder, name, renames) for name in _names(root, folder)]
    finally:
        os.close(root)
    return sorted((entry for entry in entries if entry is not None), key=lambda entry: entry.changed_at)


def read_entry(work: str, folder: str, name: str) -> Entry | None:
    """Returns that entry as it is now, without its sign; None if it is not there."""
    try:
        root = beneath.open_root(work)
    except OSError:
        return None
    try:
        return _read(root, folder, name, {})
    finally:
        os.close(root)


def is_unfinished(name: str) -> bool:
    return name.startswith(UNFINISHED_STARTS) or name.endswith(UNFINISHED_ENDS)


def _names(root: int, folder: str) -> list[str]:
    try:
        fd = beneath.open_folder(root, folder)
    except OSError:
        return []
    try:
        with os.scandir(fd) as listed:
            names = [entry.name for entry, _ in zip(listed, range(MAX_ENTRIES), strict=False)]
    finally:
        os.close(fd)
    return [name for name in names if name != LATEST and not is_unfinished(name)]


def _read(root: int, folder: str, name: str, renames: Renames) -> Entry | None:
    try:
        top = _status(root, folder, name)
        files = list(_files(root, folder, name, top))
        is_latest = stat.S_ISDIR(top.st_mode) and _latest(root, folder) == name
    except OSError:
        return None  # removed or replaced while it was read
    if not files:
        return None
    changed_at = max(file.status.st_mtime for file in files)
    inode, renamed_at = renames.get(name, (0, 0.0))
    sign = _sign(root, folder, name, {file.path for file in files})
    if is_latest:
        sign = CheckpointSign.LATEST
    elif sign is CheckpointSign.NONE and inode == top.st_ino and changed_at <= renamed_at:
        sign = CheckpointSign.RENAMED
    return Entry(
        name=name,
        files=tuple(sorted(file.path for file in files)),
        version=version_of_files((file.path, file.status) for file in files),
        changed_at=changed_at,
        size=sum(file.status.st_size for file in files),
        sign=sign,
        wrong=_problem(name, files),
    )


def _status(root: int, folder: str, name: str) -> os.stat_result:
    fd = beneath.open_folder(root, folder)
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    finally:
        os.close(fd)


def _files(root: int, folder: str, name: str, top: os.stat_result) -> Iterator[_File]:
    """Yields the regular files of the entry, at most one more than may be kept. Links are left out."""
    if stat.S_ISREG(top.st_mode):
        yield _File(name, top)
        return
    pending, count = [name] if stat.S_ISDIR(top.st_mode) else [], 0
    while pending:
        path = pending.pop()
        fd = beneath.open_folder(root, f"{folder}/{path}")
        try:
            with os.scandir(fd) as listed:
                for entry in listed:
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(f"{path}/{entry.name}")
                    elif stat.S_ISREG(status.st_mode):
                        count += 1
                        yield _File(f"{path}/{entry.name}", status)
                    if count > MAX_CHECKPOINT_FILES or len(pending) > MAX_CHECKPOINT_FILES:
                        return
        finally:
            os.close(fd)


def _sign(root: int, folder: str, name: str, paths: set[str]) -> CheckpointSign:
    if f"{name}/{METADATA}" in paths:
        return CheckpointSign.METADATA
    if f"{name}/{MARKER}" in paths:
        return CheckpointSign.MARKER
    # DeepSpeed's own folder, in a folder that the script named.
    named = _latest(root, f"{folder}/{name}") if f"{name}/{LATEST}" in paths else ""
    if named and any(path.startswith(f"{name}/{named}/") for path in paths):
        return CheckpointSign.LATEST
    return CheckpointSign.NONE


def _latest(root: int, folder: str) -> str:
    """Returns what DeepSpeed's file in `folder` names; "" if there is none."""
    try:
        fd = beneath.open_regular(root, f"{folder}/{LATEST}")
    except OSError:
        return ""
    try:
        return os.pread(fd, MAX_LATEST_BYTES, 0).decode(errors="replace").strip()
    finally:
        os.close(fd)


def _problem(name: str, files: list[_File]) -> str:
    if not name.isprintable() or len(name) > MAX_CHECKPOINT_NAME:
        return f"its name is not plain text of at most {MAX_CHECKPOINT_NAME} characters"
    if len(files) > MAX_CHECKPOINT_FILES:
        return f"it has more than {MAX_CHECKPOINT_FILES:,} files"
    if any(not file.path.isprintable() or len(file.path) > MAX_PATH for file in files):
        return "the name of a file in it is too long or not plain text"
    return ""
