"""Stores the logs of one attempt, and removes their files once the object store has them. Each step may be
repeated, by several workers at once, and a kill between two of them loses nothing: a log is where it was
until the store has it, and readers look in both places."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from django.db import transaction

from jobs.logs import log_store
from jobs.logs.models import EPOCH
from jobs.models import ArchivedLog, Attempt, DataRemoval, LogArchive
from jobs.states import DataKind
from workspaces.models import Workspace
from workspaces.object_store.models import ObjectState
from workspaces.object_store.rows import live_hashes
from workspaces.stored_files import blob_cache, blobs, deletions
from workspaces.stored_files.blob_writer import BlobWriter

# Logs that are recorded together.
BATCH = 100


class DiskFull(Exception):
    """The disk of the stored files has no room for a log that is to be uploaded; a sentence says so."""


class RoundBudget:
    """What one round may still do: until `stop_at` (time.monotonic), and `max_bytes` that it stores."""

    def __init__(self, stop_at: float, max_bytes: int) -> None:
        self._stop_at = stop_at
        self._max_bytes = max_bytes
        self._began_s = time.thread_time()

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self._stop_at

    @property
    def is_spent(self) -> bool:
        return self.is_late or self._max_bytes <= 0

    def close(self) -> None:
        """Lets nothing more be stored in this round."""
        self._max_bytes = 0

    def spend(self, count: int) -> None:
        """Counts stored bytes, and waits as long as this thread has computed: the worker has other work."""
        self._max_bytes -= count
        time.sleep(time.thread_time() - self._began_s)
        self._began_s = time.thread_time()


def store_logs(archive: LogArchive, now: datetime, budget: RoundBudget) -> None:
    """Stores each log that is not stored yet, as far as the budget allows. Raises DiskFull."""
    attempt = archive.attempt
    run, number = attempt.run_id, attempt.number
    recorded = set(ArchivedLog.objects.filter(attempt=attempt).values_list("name", flat=True))
    sizes = log_store.local_log_sizes(run, number)
    waiting = [name for name, size in sizes.items() if size and name not in recorded]
    # Before the first file goes, and long before: servers on other machines may see it late.
    if waiting or recorded:
        log_store.mark_archived(run, number)
    for start in range(0, len(waiting), BATCH):
        batch: list[ArchivedLog] = []
        try:
            for name in waiting[start : start + BATCH]:
                if budget.is_spent:
                    return
                # A retention rule may remove it meanwhile.
                with suppress(FileNotFoundError):
                    batch.append(_store_log(attempt, name))
                    budget.spend(batch[-1].size_bytes)
        finally:
            # Also before a disk that is full: what was copied need not be copied again.
            _record(attempt, batch)
    LogArchive.objects.filter(pk=archive.pk).update(stored_at=now)


def remove_files(archive: LogArchive, now: datetime) -> bool:
    """Removes the files of the logs if the store has all of them. Returns whether it has."""
    attempt = archive.attempt
    logs = {row.name: row for row in ArchivedLog.objects.filter(attempt=attempt)}
    hashes = {row.sha256 for row in logs.values()}
    run, number = attempt.run_id, attempt.number
    # One may have been damaged on its way to the store.
    lost = blob_cache.absent_hashes(hashes)
    if names := [row.name for row in logs.values() if row.sha256 in lost]:
        _store_again(archive, [name for name in names if log_store.path(run, number, name).exists()])
        return False
    if live_hashes(hashes, ObjectState.STORED) != hashes:
        return False
    with deletions.allowed() as is_allowed:
        # A backup whose database does not name the log yet needs its file.
        if not is_allowed:
            return False
        names = [name for name, size in log_store.local_log_sizes(run, number).items() if size]
        # No node sends bytes any more, but somebody may have restored or edited a file.
        if changed := [name for name in names if not _is_same(attempt, name, logs.get(name))]:
            _store_again(archive, changed)
            return False
        for name in names:
            log_store.path(run, number, name).unlink(missing_ok=True)
    return bool(LogArchive.objects.filter(pk=archive.pk).update(done_at=now))


def _store_log(attempt: Attempt, name: str) -> ArchivedLog:
    with log_store.path(attempt.run_id, attempt.number, name).open("rb") as file, BlobWriter() as writer:
        facts = os.fstat(file.fileno())
        # Copies make room; what waits for its upload may take more than they may.
        if not blob_cache.has_room(facts.st_size):
            free = blob_cache.free_bytes() - blob_cache.MIN_FREE_BYTES
            if free < facts.st_size:
                raise DiskFull(
                    f"Logs stay below DATA_DIR/runs: the next one has {facts.st_size:,} bytes, and the disk "
                    f"of {blobs.root()} has {max(free, 0):,} left for it on its way to the store of "
                    "BLOB_STORE. Free space there."
                )
        while chunk := file.read(blobs.CHUNK_BYTES):
            writer.write(chunk)
        sha256 = writer.finish()
    written_at = EPOCH + timedelta(microseconds=facts.st_mtime_ns // 1000)
    return ArchivedLog(
        attempt=attempt, name=name, sha256=sha256, size_bytes=writer.size, written_at=written_at
    )


def _record(attempt: Attempt, logs: Sequence[ArchivedLog]) -> None:
    if not logs:
        return
    with transaction.atomic():
        # A retention rule marks what it removes under the same lock. It removes what was recorded before.
        Workspace.objects.select_for_update(no_key=True).get(pk=attempt.run.workspace_id)
        if not DataRemoval.objects.filter(run=attempt.run_id, kind=DataKind.LOGS).exists():
            ArchivedLog.objects.bulk_create(logs, ignore_conflicts=True)


def _store_again(archive: LogArchive, names: Collection[str]) -> None:
    with transaction.atomic():
        ArchivedLog.objects.filter(attempt=archive.attempt, name__in=names).delete()
        LogArchive.objects.filter(pk=archive.pk).update(stored_at=None)


def _is_same(attempt: Attempt, name: str, log: ArchivedLog | None) -> bool:
    """Returns whether the file is what was stored of it."""
    try:
        facts = log_store.path(attempt.run_id, attempt.number, name).stat()
    except FileNotFoundError:
        return True
    return log is not None and (facts.st_size, facts.st_mtime_ns // 1000) == (
        log.size_bytes,
        log.written_us,
    )
