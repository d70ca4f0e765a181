"""Reads logs of ended attempts that have moved to the stored files (BLOB_STORE).

From the store come only the bytes that a reader wants. Whoever needs a whole file gets a copy, which the hub
keeps and removes as those of other stored files (workspaces.stored_files.blob_cache)."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from cachetools import TTLCache
from django.db import DatabaseError, connections

from jobs.logs.models import ArchivedLog
from workspaces import process_caches
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.object_store.rows import AT_ONCE, live_objects
from workspaces.stored_files import blob_cache, blobs

# Pieces that are read from the store at the same time.
READERS = 16
# Larger logs are not fetched ahead of a search, which may end before it comes to them.
MAX_AHEAD_BYTES = 8 * 2**20
# A page reads hundreds of logs of one attempt. The rows of a log never change, and one that is new has its
# file for much longer than this.
REUSED_FOR_S = 5.0
# A request to a store that is away is repeated for longer than a page waits for a log, which then asks anew.
# Whoever reads within this time after a failure gets its reason at once.
AWAY_S = 20.0
logger = logging.getLogger(__name__)
_lock = threading.Lock()
_attempts: TTLCache[tuple[str, int], Mapping[str, ArchivedLog]] = TTLCache(16, REUSED_FOR_S)


class _Outage:
    """The last failure of the store in this process, as a sentence."""

    until = 0.0
    reason = ""


class LogPart(NamedTuple):
    """The bytes of an archived log from `start` up to `end`, which does not lie beyond its end."""

    log: ArchivedLog
    start: int
    end: int

    @classmethod
    def from_range(cls, log: ArchivedLog, offset: int, limit: int) -> LogPart:
        """Returns at most `limit` bytes from `offset`, as far as the log has them."""
        start = max(0, offset)
        return cls(log, start, min(log.size_bytes, start + limit))


def archived_logs(run_id: str, attempt: int) -> Mapping[str, ArchivedLog]:
    """Returns the archived logs of an attempt by their names."""
    key = run_id, attempt
    with _lock:
        rows = _attempts.get(key)
    if rows is None:
        query = ArchivedLog.objects.filter(attempt__run=run_id, attempt__number=attempt)
        rows = {row.name: row for row in query}
        with _lock:
            _attempts[key] = rows
    return rows


def forget_rows() -> None:
    with _lock:
        _attempts.clear()


@process_caches.register
def forget_all() -> None:
    forget_rows()
    _Outage.until = 0.0


def read_parts(parts: Sequence[LogPart]) -> list[bytes]:
    """Returns the bytes of each part; b"" of a log that was removed a moment ago. Raises StoreUnavailable."""
    pieces = [_local_bytes(part) for part in parts]
    absent = [index for index, piece in enumerate(pieces) if piece is None]
    if not absent:
        return [piece or b"" for piece in pieces]
    objects = _objects({parts[index].log.sha256 for index in absent})
    # Waits for files that another server has yet to upload, so it is not among the readers.
    readable = {sha256: blob_cache.uploaded_row(row) for sha256, row in objects.items()}

    def read(index: int) -> bytes:
        part = parts[index]
        row = readable[part.log.sha256]
        return b"".join(blob_cache.read_object(row, part.start, part.end))

    there = [index for index in absent if parts[index].log.sha256 in readable]
    for index in set(absent) - set(there):
        _raise_if_lost(parts[index].log)
    if there and time.monotonic() < _Outage.until:
        raise StoreUnavailable(_Outage.reason)
    try:
        with ThreadPoolExecutor(READERS, "log-parts") as pool:
            for index, piece in zip(there, pool.map(read, there), strict=True):
                pieces[index] = piece
    except StoreUnavailable as error:
        if not error.is_lasting:
            _Outage.reason, _Outage.until = str(error), time.monotonic() + AWAY_S
        raise
    return [piece or b"" for piece in pieces]


@contextmanager
def copies_ahead(logs: Sequence[ArchivedLog]) -> Iterator[None]:
    """Fetches copies of small logs, several at a time and in this order, while the body opens one after
    another. What has not begun when the body ends is not fetched."""
    small = (log.sha256 for log in logs if log.size_bytes <= MAX_AHEAD_BYTES)
    absent = [sha256 for sha256 in small if not blobs.path(sha256).exists()]
    # The body fetches the first one itself, and learns at once of a store that is away.
    following = absent[1:]
    if not following:
        yield
        return
    # In one query, so that the threads need no connections to the database.
    objects = _objects(set(following))
    pool = ThreadPoolExecutor(READERS, "log-copies")
    for row in map(objects.get, following):
        if row is not None and row.state == ObjectState.STORED:
            pool.submit(_fetch_ahead, row)
    try:
        yield
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _fetch_ahead(row: StoredObject) -> None:
    try:
        blob_cache.fetch_copy(row)
    except (OSError, DatabaseError) as error:
        # Whoever opens the log meets the same and is told.
        logger.info("%s could not be fetched ahead: %s", row, error)
    finally:
        # Removing older copies asks the database.
        connections.close_all()


def open_copy(log: ArchivedLog) -> int:
    """Returns a descriptor, to read, of a copy of the whole log on this disk. Raises StoreUnavailable, and
    FileNotFoundError for a log that was removed a moment ago."""
    try:
        return os.open(blob_cache.local_path(log.sha256), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        _raise_if_lost(log)
        raise


def _local_bytes(part: LogPart) -> bytes | None:
    if part.start >= part.end:
        return b""
    if not blob_cache.is_local(part.log.sha256):
        return None
    try:
        with blobs.path(part.log.sha256).open("rb") as file:
            return os.pread(file.fileno(), part.end - part.start, part.start)
    except FileNotFoundError:
        return None


def _objects(hashes: set[str]) -> dict[str, StoredObject]:
    rows: dict[str, StoredObject] = {}
    names = sorted(hashes)
    for start in range(0, len(names), AT_ONCE):
        query = live_objects().filter(sha256__in=names[start : start + AT_ONCE])
        rows |= {row.sha256: row for row in query}
    return rows


def _raise_if_lost(log: ArchivedLog) -> None:
    """Raises StoreUnavailable unless the log was removed: an empty log would look as if nothing had been
    written."""
    forget_rows()
    if ArchivedLog.objects.filter(pk=log.pk).exists():
        raise StoreUnavailable(
            f"The bytes of the log {log.name} {blobs.absence(log.sha256)}.", is_lasting=True
        )
