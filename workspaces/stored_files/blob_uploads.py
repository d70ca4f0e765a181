"""Uploads stored files from the disk of this server to the object store.

Each file waits by its row and stays on the disk until its object is complete, so nothing is lost while the
store is away. A process that uploads a file holds a lock on it, which ends with the process; whoever comes
next begins again."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice

from django.db import DatabaseError, connections
from django.utils import timezone

from workspaces.object_store.client import PART_BYTES, object_client
from workspaces.object_store.errors import ObjectMissing, StoreUnavailable
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.object_store.rows import (
    is_store_used,
    mark_uploaded,
    new_uploads,
    postpone_upload,
    waiting_objects,
)
from workspaces.stored_files import blob_cache, blobs

log = logging.getLogger(__name__)
# Files that one process uploads at the same time.
UPLOADS = 4
# A process looks for files that wait at least so often: those of others of this server, and postponed ones.
INTERVAL_S = 5.0
# An upload that the store has forgotten is begun again at once, so often.
BEGINNINGS = 3
_AT_ONCE = 200


class UploadThread(threading.Thread):
    """Uploads what waits, again and again, until `close`."""

    def __init__(self) -> None:
        super().__init__(name="blob-uploads", daemon=True)
        self._closing = False

    def run(self) -> None:
        is_failing = False
        while not self._closing:
            # Before the look: a file that begins to wait during it is seen at once.
            new_uploads.clear()
            try:
                upload_waiting()
                blob_cache.evict_copies()
                is_failing = False
            except Exception as error:
                # The database may be away: this thread must outlive that. Said once, not every 5 s.
                if not is_failing:
                    log.warning("Files could not be uploaded to the store; tried again: %r", error)
                is_failing = True
            finally:
                connections.close_all()
            new_uploads.wait(INTERVAL_S)

    def close(self) -> None:
        self._closing = True
        new_uploads.set()


@contextmanager
def uploading() -> Iterator[None]:
    """Context manager for the life of a server: uploads what waits, if BLOB_STORE is set."""
    if not is_store_used():
        yield
        return
    thread = UploadThread()
    thread.start()
    try:
        yield
    finally:
        # What it is uploading goes on by the next process.
        thread.close()


def upload_waiting() -> int:
    """Uploads every file that waits, whose time has come, and that is on this disk, also those that begin to
    wait meanwhile. Returns how many are complete now. A store that fails is recorded in the rows."""
    uploads: dict[Future[bool], int] = {}
    # Row -> when it may be taken again: another process has it, or the database did not take its end.
    not_before: dict[int, float] = {}
    done = 0
    with ThreadPoolExecutor(UPLOADS, thread_name_prefix="blob-upload") as pool:
        while True:
            now = time.monotonic()
            not_before = {row_pk: moment for row_pk, moment in not_before.items() if moment > now}
            for row in _next_rows(UPLOADS - len(uploads), [*not_before, *uploads.values()]):
                upload = pool.submit(_upload_in_thread, row)
                uploads[upload] = row.pk
                upload.add_done_callback(lambda _: new_uploads.set())
            if not uploads:
                return done
            new_uploads.wait(INTERVAL_S)
            # Before the look: what ends or begins to wait during it wakes this thread again.
            new_uploads.clear()
            for upload in [upload for upload in uploads if upload.done()]:
                row_pk = uploads.pop(upload)
                if upload.result():
                    done += 1
                else:
                    not_before[row_pk] = time.monotonic() + INTERVAL_S


def _next_rows(count: int, passed_over: Collection[int]) -> list[StoredObject]:
    if not count:
        return []
    due = waiting_objects().filter(try_at__lte=timezone.now()).exclude(pk__in=passed_over)
    # Those on the disks of other servers may be many.
    here = (row for row in due.iterator(_AT_ONCE) if blobs.path(row.sha256).is_file())
    return list(islice(here, count))


def _upload_in_thread(row: StoredObject) -> bool:
    try:
        return upload_file(row)
    except DatabaseError as error:
        log.warning("The upload of %s could not be recorded; it is repeated: %s", row, error)
        return False
    finally:
        connections.close_all()


def upload_file(row: StoredObject) -> bool:
    """Uploads one file that is on this disk. Returns whether its object is complete now; False also if
    another process uploads it."""
    try:
        descriptor = os.open(blobs.path(row.sha256), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have done it between the query and the lock.
        if not StoredObject.objects.filter(pk=row.pk, state=ObjectState.WAITING).exists():
            return False
        _send(row, descriptor)
    except BlockingIOError:
        return False
    except blobs.DamagedBlob:
        return False  # it was set aside with its row, and the log says so
    except StoreUnavailable as error:
        if not row.tries:
            log.warning("%s is not uploaded yet, and is tried again: %s", row, error)
        postpone_upload(row, str(error))
        return False
    finally:
        os.close(descriptor)
    return mark_uploaded(row) or _is_stored_by_another(row)


def _send(row: StoredObject, descriptor: int) -> None:
    """Writes the object and checks it. Raises StoreUnavailable, and DamagedBlob."""
    # Before the first byte goes, unless this process has hashed these very bytes when they arrived: another
    # server that has the file, too, may have written the object of this row already.
    blobs.verify_open(descriptor, row.sha256)
    client = object_client()
    for beginning in range(1, BEGINNINGS + 1):
        try:
            client.upload(row.key, blobs.path(row.sha256), row.size_bytes)
            if row.size_bytes > PART_BYTES and client.object_size(row.key) != row.size_bytes:
                raise ObjectMissing(f"The store has not put together all parts of {row}.")
            return
        except ObjectMissing:
            # The store has lost the upload with the parts that it had.
            if beginning == BEGINNINGS:
                raise


def _is_stored_by_another(row: StoredObject) -> bool:
    """Returns whether another server, which has the file on its own disk, too, has uploaded it meanwhile.
    Deletes the object if no row of it is left; that of a deleted file goes with its row."""
    current = StoredObject.objects.filter(pk=row.pk).first()
    if current is None:
        object_client().delete_objects([row.key])
    return current is not None and current.state == ObjectState.STORED
