"""Files that are uploaded in pieces, by one writer at a time. The part of an uploader grows under a lock, and
becomes a blob when it is complete.

The lock is an flock on a file beside the part, so it works between threads and between several web processes.
The length of the part is only compared under it. The piece that completes a file first moves the part to a
name that no request knows; there it is written, hashed, sealed and closed before it becomes a blob. If that
is interrupted, the upload starts anew; a complete part is never left unpublished."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workspaces.stored_files import blobs, verification

if TYPE_CHECKING:
    from hashlib import _Hash

# How long an unfinished upload stays after its last piece, of whatever protocol. Nothing else deletes from
# DATA_DIR/uploads.
KEEP_UNFINISHED_S = 7 * 86_400.0
MAX_HASHES = 1000
LOCK = ".lock"
_lock = threading.Lock()
_hashes: OrderedDict[Path, tuple[verification.Identity, _Hash]] = OrderedDict()


class Busy(Exception):
    """Another request is writing or completing the same file."""


class WrongOffset(Exception):
    """The piece does not begin where the part ends. `expected`: where it has to begin."""

    def __init__(self, expected: int) -> None:
        super().__init__(f"the next byte wanted is {expected}")
        self.expected = expected


@dataclass(frozen=True)
class Part:
    """The unfinished file of one uploader, with the SHA-256 ("" if the uploader does not know it) and the
    size that it must have in the end."""

    path: Path
    sha256: str
    total: int


class Appended(NamedTuple):
    """`stored`: the length of a part after a piece; `sha256`: the name of the blob that the last piece made,
    "" before."""

    stored: int
    sha256: str


def stored_bytes(path: Path) -> int:
    """Returns the length of a part; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def append(part: Part, start: int, data: bytes) -> Appended:
    """Writes a piece. With the last one the file becomes a blob.

    Raises WrongOffset, Busy, blobs.BlobError for a complete file with another SHA-256 (of which nothing is
    stored), and OSError, after which the part is as it was before."""
    with _locked(part.path):
        stored = stored_bytes(part.path)
        if stored != start:
            raise WrongOffset(stored)
        # A crash leaves the part longer or shorter than the client knows; it asks for the length before it
        # goes on.
        if start + len(data) < part.total:
            _grow(part.path, part.path, start, data)
            return Appended(start + len(data), "")
        return Appended(part.total, _complete(part, start, data))


def remove_forgotten(folder: Path, before: float) -> int:
    """Deletes the parts in a folder to which nobody has added since `before` (Unix seconds), and locks
    without a part. Returns how many parts."""
    removed = 0
    for file in folder.glob("*.*"):
        path = file.with_name(file.name.removesuffix(LOCK))
        with suppress(Busy, FileNotFoundError), _locked(path):
            if path.is_file() and path.stat().st_mtime < before:
                path.unlink()
                removed += 1
    return removed


def _grow(file: Path, name: Path, start: int, data: bytes) -> _Hash | None:
    """Writes `data` at the end of `file`. Returns the hash of all of it if that of its beginning is known,
    and stores it under `name`."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        digest = _hash_until_now(name, descriptor)
        try:
            _write(descriptor, data, start)
        except OSError:
            # A full disk: what was written of this piece goes, so that the length stays a multiple of whole
            # pieces.
            os.ftruncate(descriptor, start)
            raise
        if digest is not None:
            digest.update(data)
            blobs.set_time(descriptor)
            _keep_hash(name, verification.file_identity(os.fstat(descriptor)), digest)
        return digest
    finally:
        os.close(descriptor)


def _complete(part: Part, start: int, data: bytes) -> str:
    private = blobs.part_path()
    # Under a name that no request knows: from here on nobody can write to it while it is hashed and
    # published.
    if start:
        part.path.rename(private)
    try:
        digest = _grow(private, part.path, start, data)
    except OSError:
        if start:
            private.rename(part.path)
        private.unlink(missing_ok=True)
        raise
    with _lock:
        _hashes.pop(part.path, None)
    with _removed_at_the_end(private):
        descriptor = os.open(private, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sha256 = digest.hexdigest() if digest is not None else verification.sha256_of(descriptor)
            if part.sha256 not in ("", sha256):
                raise blobs.BlobError(f"the bytes have the SHA-256 {sha256}, not {part.sha256}")
            blobs.seal(descriptor)
        finally:
            os.close(descriptor)
        blobs.publish(private, sha256)
    return sha256


@contextmanager
def _removed_at_the_end(file: Path) -> Iterator[None]:
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock of a part. Raises Busy at once if another request has it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = path.with_name(f"{path.name}{LOCK}")
    descriptor = _lock_file(lock)
    try:
        yield
    finally:
        if not path.exists():
            # Nothing is left to lock. Who has opened this file meanwhile sees that it is no longer the one of
            # this name.
            lock.unlink(missing_ok=True)
        os.close(descriptor)


def _lock_file(lock: Path) -> int:
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                # The lock file may have been removed between open and flock; then its name belongs to another
                # file, and this lock protects nothing.
                if os.path.samestat(os.fstat(descriptor), lock.stat()):
                    return descriptor
        except BlockingIOError as error:
            os.close(descriptor)
            raise Busy from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _write(descriptor: int, data: bytes, start: int) -> None:
    rest, at = memoryview(data), start
    while rest:
        written = os.pwrite(descriptor, rest, at)
        rest, at = rest[written:], at + written


def _hash_until_now(name: Path, descriptor: int) -> _Hash | None:
    """Returns the hash of the file's content if this process has written all of it and nobody has changed it
    since; otherwise None."""
    facts = os.fstat(descriptor)
    if facts.st_size == 0:
        return hashlib.sha256()
    with _lock:
        hashed_bytes, digest = _hashes.pop(name, (None, None))
    # The fifth item, the time of the inode's last change, is not compared: renaming the file changes it.
    return (
        digest
        if hashed_bytes is not None and hashed_bytes[:4] == verification.file_identity(facts)[:4]
        else None
    )


def _keep_hash(name: Path, state: verification.Identity, digest: _Hash) -> None:
    with _lock:
        _hashes[name] = state, digest
        while len(_hashes) > MAX_HASHES:
            _hashes.popitem(last=False)
