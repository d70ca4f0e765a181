"""The local copies of stored files that lie in the object store: made when somebody reads a file, and removed
when they take more than BLOB_CACHE_BYTES, the least recently used first.

The time of the last access says when a copy was used. A file that is not uploaded yet is no copy and stays.
Who has a copy open goes on reading it after it was removed."""

from __future__ import annotations

import logging
import math
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from workspaces.hub_metrics.instruments import BLOB_CACHE_BYTES, BLOB_READS
from workspaces.object_store.client import object_client, store_configuration
from workspaces.object_store.errors import ObjectMissing, StoreUnavailable
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.object_store.rows import is_store_used, live_hashes, live_object, mark_uploaded
from workspaces.stored_files import blobs, verification
from workspaces.stored_files.blob_writer import BlobWriter

log = logging.getLogger(__name__)
# A copy that was used so recently stays: somebody may be about to open it by its path.
IN_USE_S = 600.0
# The time of the last access is not set anew before it is so old.
ACCESS_STEP_S = 60.0
# A file that another server has yet to upload is waited for.
WAIT_S, POLL_S = 20.0, 0.5
# Copies are counted by this process at most so often, unless it knows that there are too many.
COUNT_EVERY_S = 60.0
# Where they take too much, a tenth is freed at once.
TARGET_SHARE = 0.9
_AT_ONCE = 500
# What is left to files that have to be on the disk.
MIN_FREE_BYTES = 512 * 2**20
# A lock for each of 64 groups of hashes, so that a file is fetched once for all who want it.
_fetching = [threading.Lock() for _ in range(64)]


class _Copy(NamedTuple):
    used_at: float
    size: int
    name: str


class _Usage:
    """What this process knows of the bytes of all files on the disk."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bytes = 0
        self.counted_at = 0.0


_usage = _Usage()


def local_path(sha256: str) -> Path:
    """Returns the path of the blob on this disk, to which it is fetched if it is only in the object store.
    The file may not exist if there is no such blob. Raises StoreUnavailable, an OSError."""
    file = blobs.path(sha256)
    if is_store_used() and not is_local(sha256):
        row = live_object(sha256)
        if row is not None:
            fetch_copy(row)
    return file


def is_local(sha256: str) -> bool:
    """Returns whether the blob is on this disk, and marks it as used then."""
    file = blobs.path(sha256)
    try:
        before = file.stat()
        now = time.time_ns()
        if is_store_used() and now - before.st_atime_ns > ACCESS_STEP_S * 1e9:
            os.utime(file, ns=(now, before.st_mtime_ns))
            verification.carry_over(sha256, before, file.stat())
    except FileNotFoundError:
        return False
    BLOB_READS.labels("disk").inc()
    return True


def absent_hashes(hashes: Iterable[str]) -> set[str]:
    """Returns those of many hashes whose blob is neither on this disk nor in the object store."""
    elsewhere = {sha256 for sha256 in hashes if not blobs.path(sha256).is_file()}
    return elsewhere - live_hashes(elsewhere)


def size_of(sha256: str) -> int:
    """Returns the bytes of the blob, wherever it is. Raises FileNotFoundError."""
    try:
        return blobs.path(sha256).stat().st_size
    except FileNotFoundError:
        row = live_object(sha256)
        if row is None:
            raise
        return row.size_bytes


def uploaded_row(row: StoredObject) -> StoredObject:
    """Returns the row once its object is complete; a file that another server has yet to upload is waited
    for. Raises StoreUnavailable."""
    deadline = time.monotonic() + WAIT_S
    server = row.server
    while row.state == ObjectState.WAITING:
        if time.monotonic() > deadline:
            if _is_complete(row):
                mark_uploaded(row)
                return row
            raise StoreUnavailable(
                f"This file is still on the disk of the server {server}, which has not uploaded it to the "
                "store of BLOB_STORE yet: try again in a minute, and see that this server runs."
            )
        time.sleep(POLL_S)
        current = live_object(row.sha256)
        if current is None:
            raise ObjectMissing("This file was deleted a moment ago.")
        row = current
    return row


def _is_complete(row: StoredObject) -> bool:
    """Returns whether the object is there though its row says that it waits: the server was killed between
    the two, or the database was put back to an earlier time. Its name is that of this one upload."""
    try:
        return object_client().object_size(row.key) == row.size_bytes
    except ObjectMissing:
        return False


def has_room(size: int) -> bool:
    """Makes room for a copy of `size` bytes. Returns whether there is room now."""
    configuration = store_configuration()
    limit = configuration.cache_bytes if configuration and configuration.cache_bytes else math.inf
    with _usage.lock:
        is_old = time.monotonic() - _usage.counted_at > COUNT_EVERY_S
        shortage = size + MIN_FREE_BYTES - free_bytes()
        if is_old or shortage > 0 or _usage.bytes + size > limit:
            _usage.bytes = _evict(limit - size, shortage)
            _usage.counted_at = time.monotonic()
        is_enough = _usage.bytes + size <= limit and free_bytes() >= size + MIN_FREE_BYTES
        if is_enough:
            _usage.bytes += size
        BLOB_CACHE_BYTES.set(_usage.bytes)
    return is_enough


def free_bytes() -> int:
    """Returns what the disk of the stored files has left. Makes their folder if it is missing."""
    root = blobs.root()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return shutil.disk_usage(root).free


def evict_copies() -> None:
    """Removes copies if there are too many; for a thread that calls this again and again."""
    if is_store_used():
        has_room(0)


def fetch_copy(row: StoredObject) -> None:
    """Makes a copy of the row's object on this disk, unless there is one. Raises StoreUnavailable, an
    OSError."""
    with _fetching[int(row.sha256[:2], 16) % len(_fetching)]:
        if is_local(row.sha256):
            return
        row = uploaded_row(row)
        # Who needs a path gets the file even where the copies take too much: it goes again later.
        has_room(row.size_bytes)
        with BlobWriter() as writer:
            for piece in read_object(row, 0, row.size_bytes):
                writer.write(piece)
            if writer.sha256 != row.sha256:
                raise damaged_object(row)
            writer.finish_copy()


def read_object(row: StoredObject, start: int, end: int) -> Iterator[bytes]:
    """Yields bytes of the object of a row whose upload is complete. Raises StoreUnavailable, also if the
    object has gone from the store."""
    if start == end:
        return
    BLOB_READS.labels("store").inc()
    try:
        yield from object_client().open_range(row.key, start, end)
    except ObjectMissing as error:
        raise missing_object(row) from error


def damaged_object(row: StoredObject) -> StoreUnavailable:
    """Returns the error about an object that does not have the content that its name says."""
    log.error("The object %s does not have the SHA-256 that is its name.", row)
    return StoreUnavailable(
        f"The object {row} in the store does not have the content that its name says: restore it from a "
        "backup or an earlier version of the bucket, or upload the file again.",
        is_lasting=True,
    )


def missing_object(row: StoredObject) -> StoreUnavailable:
    """Returns the error about an object that the hub has stored and that is not there any more."""
    log.error("The object %s has gone from the store.", row)
    return StoreUnavailable(
        f"The object {row} has gone from the store, though the hub has not deleted it: restore it from a "
        "backup or an earlier version of the bucket.",
        is_lasting=True,
    )


def _evict(limit: float, shortage: int) -> int:
    """Counts the files on the disk. Removes copies if they take more than `limit` bytes, and as many as the
    disk lacks (`shortage`, in bytes). Returns the bytes that are left."""
    copies = list(_copies())
    total = sum(copy.size for copy in copies)
    excess = max(shortage, total - int(limit * TARGET_SHARE) if total > limit else 0)
    newest = time.time() - IN_USE_S
    old = sorted(copy for copy in copies if copy.used_at < newest) if excess > 0 else []
    for some in (old[start : start + _AT_ONCE] for start in range(0, len(old), _AT_ONCE)):
        uploaded = live_hashes([copy.name for copy in some], ObjectState.STORED)
        for copy in some:
            if excess > 0 and copy.name in uploaded and _remove(copy.name):
                total -= copy.size
                excess -= copy.size
    return total


def _remove(sha256: str) -> bool:
    with suppress(FileNotFoundError):
        blobs.path(sha256).unlink()
        verification.forget(sha256)
        return True
    return False


def _copies() -> Iterator[_Copy]:
    for entry in local_blobs():
        with suppress(FileNotFoundError):
            facts = entry.stat(follow_symlinks=False)
            used_at = max(facts.st_atime, facts.st_mtime)
            yield _Copy(used_at, facts.st_size, entry.name)


def local_blobs() -> Iterator[os.DirEntry[str]]:
    """Yields every blob on this disk; neither unfinished files nor damaged ones."""
    root = blobs.root()
    folders: Iterable[Path] = (
        sorted(path for path in root.iterdir() if len(path.name) == 2) if root.is_dir() else []
    )
    for folder in folders:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if blobs.SHA256.match(entry.name))
