"""Copies of files that are hashed on the way, and links instead of copies where the content cannot change."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

BLOCK_BYTES = 1024 * 1024
# Another file system, one without hard links, a full count of them, or the kernel's protection of links.
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_libc = ctypes.CDLL(None, use_errno=True)


class CopiedFile(NamedTuple):
    size: int
    sha256: str
    modified_ns: int


def copy_file(source: Path | str, target: Path | str, mode: int = 0o600) -> CopiedFile:
    """Copies as many bytes as the file has now to a new file, with its time of modification: what is appended
    meanwhile is left out. Raises FileExistsError if `target` exists."""
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        facts = os.fstat(reading)
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            digest, rest = hashlib.sha256(), facts.st_size
            while rest and (block := os.read(reading, min(BLOCK_BYTES, rest))):
                digest.update(block)
                _write(writing, block)
                rest -= len(block)
            os.utime(writing, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    return CopiedFile(facts.st_size - rest, digest.hexdigest(), facts.st_mtime_ns)


def write_pieces(pieces: Iterable[bytes], target: Path, sha256: str) -> int | None:
    """Writes a new file, read-only, whose content has this SHA-256. Returns its size; None, and writes
    nothing, if the pieces have another one."""
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        digest, size = hashlib.sha256(), 0
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
                size += len(piece)
        if digest.hexdigest() != sha256:
            return None
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)
    return size


def link_file(source: Path | str, target: Path | str) -> bool:
    """Gives the file a second name. Returns False where that is impossible. Raises FileExistsError."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NO_LINK:
            return False
        raise
    return True


def hash_file(path: Path) -> CopiedFile:
    """Reads a file whole and returns its size and SHA-256."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
        return CopiedFile(size, digest.hexdigest(), os.fstat(file.fileno()).st_mtime_ns)


def plain_files(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yields every plain file below `folder`, those of a folder before those of its sub-folders, so that the
    final sizes of logs come before the logs. What disappears meanwhile is left out."""
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    folders = []
    for entry in entries:
        if entry.is_file(follow_symlinks=False):
            yield entry
        elif entry.is_dir(follow_symlinks=False):
            folders.append(entry.path)
    for inner in folders:
        yield from plain_files(inner)


def make_folder(folder: Path) -> None:
    """Makes a folder and its parents, private to this account."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def write_to_disk(folder: Path) -> None:
    """Writes everything on the file system of `folder` to the disk: before the manifest, which says that it
    is there."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _libc.syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)


def _write(descriptor: int, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
