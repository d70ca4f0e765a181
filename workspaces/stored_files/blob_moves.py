"""Moves all stored files into the object store and back, while the hub works. Each file is verified by its
hash on the way, and what is done already is left out, so that an interrupted move goes on where it was."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from django.db import connections
from django.db.models import Sum

from workspaces.object_store.client import object_client, store_configuration
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.object_store.rows import live_hashes, live_objects, record_object, waiting_objects
from workspaces.stored_files import blob_cache, blob_uploads, blobs

_AT_ONCE = 500
# Objects that are fetched or verified at the same time.
_READERS = 4
_REPORT_S = 5.0
Say = Callable[[str], None]


class MoveRefused(Exception):
    """The move cannot be made; the message is a sentence with the remedy."""


class MoveVerdict(NamedTuple):
    """`problem`: what is wrong with the object, as a sentence; "" if nothing is."""

    row: StoredObject
    problem: str


def move_to_store(say: Say) -> int:
    """Uploads every stored file of this disk that the store does not have. Returns how many there were. They
    stay here as copies. Raises StoreUnavailable once the store takes nothing."""
    count = _record_local_files()
    last_report, left = 0.0, -1
    while waiting := _waiting_here():
        if time.monotonic() - last_report > _REPORT_S:
            say(f"{waiting} files are still to be uploaded.")
            last_report = time.monotonic()
        uploaded = blob_uploads.upload_waiting()
        if not uploaded and left == waiting:
            _raise_reason()
            # Another process of this hub is uploading them.
            time.sleep(0.5)
        left = waiting
    return count


def move_to_disk(say: Say) -> int:
    """Fetches every file of the store to this disk. Returns how many were fetched. Raises MoveRefused, and
    StoreUnavailable."""
    configuration = store_configuration()
    rows = live_objects().filter(state=ObjectState.STORED)
    total = rows.aggregate(total=Sum("size_bytes"))["total"] or 0
    if configuration is not None and 0 < configuration.cache_bytes < total:
        raise MoveRefused(
            f"The files take {total:,} bytes, and the hub keeps at most BLOB_CACHE_BYTES="
            f"{configuration.cache_bytes} of them on the disk. Set BLOB_CACHE_BYTES=0, restart the hub, and "
            "run this command again with the same setting."
        )
    missing = sum(row.size_bytes for row in _pages() if not blobs.path(row.sha256).is_file())
    free = blob_cache.free_bytes()
    if missing > free:
        raise MoveRefused(
            f"{missing:,} bytes are to be fetched, and the disk of {blobs.root()} has {free:,} left. Free "
            "space there first."
        )
    fetched, last_report = 0, time.monotonic()
    with ThreadPoolExecutor(_READERS) as pool:
        for some in _batches(_pages()):
            absent = [row for row in some if not blobs.path(row.sha256).is_file()]
            fetched += sum(pool.map(_fetch, absent))
            if time.monotonic() - last_report > _REPORT_S:
                say(f"{fetched} files were fetched.")
                last_report = time.monotonic()
    return fetched


def verify_objects(*, is_read: bool) -> Iterator[MoveVerdict]:
    """Yields a verdict on every object. `is_read`: whether it is read whole and hashed; otherwise only its
    size is compared. Raises StoreUnavailable if the store cannot be used at all."""
    check = _read_problem if is_read else _size_problem
    with ThreadPoolExecutor(_READERS) as pool:
        for some in _batches(_pages()):
            yield from pool.map(lambda row: MoveVerdict(row, check(row)), some)


def _record_local_files() -> int:
    count = 0
    entries = blob_cache.local_blobs()
    while some := list(islice(entries, _AT_ONCE)):
        recorded = live_hashes([entry.name for entry in some])
        for entry in some:
            # The sweep may take one meanwhile.
            with suppress(FileNotFoundError):
                if entry.name not in recorded:
                    facts = entry.stat(follow_symlinks=False)
                    record_object(entry.name, facts.st_size, datetime.fromtimestamp(facts.st_mtime, UTC))
                    count += 1
    return count


def _waiting_here() -> int:
    hashes = waiting_objects().values_list("sha256", flat=True)
    return sum(blobs.path(sha256).is_file() for sha256 in hashes.iterator())


def _raise_reason() -> None:
    """Raises why nothing is uploaded, if that has failed."""
    failed = waiting_objects().exclude(error="").first()
    if failed is not None:
        raise StoreUnavailable(failed.error)


def _pages() -> Iterator[StoredObject]:
    """Yields all complete objects without holding a query open meanwhile."""
    rows, last = live_objects().filter(state=ObjectState.STORED).order_by("pk"), 0
    while some := list(rows.filter(pk__gt=last)[:_AT_ONCE]):
        yield from some
        last = some[-1].pk


def _batches(rows: Iterator[StoredObject]) -> Iterator[list[StoredObject]]:
    while some := list(islice(rows, _AT_ONCE)):
        yield some


def _fetch(row: StoredObject) -> bool:
    try:
        return blob_cache.local_path(row.sha256).is_file()
    finally:
        connections.close_all()


def _size_problem(row: StoredObject) -> str:
    try:
        size = object_client().object_size(row.key)
    except StoreUnavailable as error:
        return _problem(row, error)
    return "" if size == row.size_bytes else f"{row} has {size} bytes in place of {row.size_bytes}."


def _read_problem(row: StoredObject) -> str:
    digest = hashlib.sha256()
    try:
        for piece in blob_cache.read_object(row, 0, row.size_bytes):
            digest.update(piece)
    except StoreUnavailable as error:
        return _problem(row, error)
    return "" if digest.hexdigest() == row.sha256 else f"{row} has another content than its name says."


def _problem(row: StoredObject, error: StoreUnavailable) -> str:
    return f"{row}: {error}"
