"""Remembers which stored files this process has read whole and found to have the SHA-256 that is their name.

A file counts as verified only while nothing about it has changed: device, inode, size, and both times in
nanoseconds. No program can set the time of the last change of the inode, so a file that was written to
meanwhile is read again."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import NamedTuple

MAX_REMEMBERED = 100_000
BLOCK_BYTES = 1024 * 1024


class Identity(NamedTuple):
    """The identity of a file's state. Two are equal only if it is the same file with the same content."""

    device: int
    inode: int
    size: int
    modified_ns: int
    # The time of the inode's last change cannot be set by anybody, so a write that restores the other time is
    # noticed.
    changed_ns: int


_lock = threading.Lock()
_verified: dict[str, Identity] = {}


def file_identity(facts: os.stat_result) -> Identity:
    return Identity(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def is_verified(sha256: str, facts: os.stat_result) -> bool:
    with _lock:
        return _verified.get(sha256) == file_identity(facts)


def remember(sha256: str, facts: os.stat_result) -> None:
    """Records that the file with these facts was read whole and has that SHA-256."""
    with _lock:
        if len(_verified) >= MAX_REMEMBERED:
            _verified.clear()
        _verified[sha256] = file_identity(facts)


def carry_over(sha256: str, before: os.stat_result, after: os.stat_result) -> None:
    """Keeps a file verified whose time the hub itself has just set, which changes its identity but not its
    content."""
    # The inode's own time changes with it as well, so only device, inode and size can be compared.
    is_same_file = file_identity(before)[:3] == file_identity(after)[:3]
    if is_same_file and is_verified(sha256, before):
        remember(sha256, after)


def forget(sha256: str) -> None:
    with _lock:
        _verified.pop(sha256, None)


def sha256_of(descriptor: int, size: int | None = None) -> str:
    """Returns the SHA-256 of an open file, or of its first `size` bytes. The file's position is neither used
    nor changed."""
    digest = hashlib.sha256()
    offset = 0
    while block := os.pread(
        descriptor, BLOCK_BYTES if size is None else min(BLOCK_BYTES, size - offset), offset
    ):
        digest.update(block)
        offset += len(block)
    return digest.hexdigest()
