"""Brings archived logs back to DATA_DIR/runs, for a hub that is to go on without them among its stored files,
such as one of an earlier version."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from jobs.logs import archived_logs, log_store
from jobs.models import ArchivedLog, Attempt, DataRemoval, LogArchive
from jobs.states import DataKind
from workspaces.stored_files import blob_gc

BATCH = 500


class ReturnRefused(Exception):
    """Logs cannot be brought back now; a sentence with the remedy."""


def return_logs() -> Iterator[int]:
    """Writes each archived log to its place, and forgets that it was archived; yields how many are there
    again, now and then. May be broken off and repeated. Raises ReturnRefused, and StoreUnavailable."""
    if settings.BLOB_STORE is not None and settings.LOG_ARCHIVE_AFTER_HOURS:
        raise ReturnRefused(
            "The hub would move them again: set LOG_ARCHIVE_AFTER_HOURS=0 for all its servers and for this "
            "command, and restart them."
        )
    count = last = 0
    while logs := list(_next_logs(last)):
        for log in logs:
            _return_log(log)
        count, last = count + len(logs), logs[-1].pk
        yield count
    # Attempts are looked through anew if the setting changes again.
    LogArchive.objects.all().delete()


def _next_logs(last: int) -> Iterator[ArchivedLog]:
    rows = ArchivedLog.objects.filter(pk__gt=last).order_by("pk").select_related("attempt")
    return rows.only("name", "sha256", "size_bytes", "written_at", "created_at", "attempt__run_id")[
        :BATCH
    ].iterator()


def _return_log(log: ArchivedLog) -> None:
    target = log_store.path(log.attempt.run_id, log.attempt.number, log.name)
    if not target.exists():
        _write_file(log, target)
    if ArchivedLog.objects.filter(pk=log.pk).delete()[0]:
        blob_gc.free({log.sha256: log.created_at.timestamp()})
    elif _is_removed(log):
        target.unlink(missing_ok=True)


def _is_removed(log: ArchivedLog) -> bool:
    """Returns whether a rule or a purge has taken the log meanwhile."""
    removals = DataRemoval.objects.filter(run=log.attempt.run_id, kind=DataKind.LOGS)
    return removals.exists() or not Attempt.objects.filter(pk=log.attempt_id).exists()


def _write_file(log: ArchivedLog, target: Path) -> None:
    descriptor = archived_logs.open_copy(log)
    log_store.make_folders(target.parent)
    # Below no name that counts as a log, until it is whole.
    part = log_store.run_folder(log.attempt.run_id, log.attempt.number) / f".returned-{log.pk}"
    with os.fdopen(descriptor, "rb") as source, part.open("wb") as file:
        part.chmod(0o600)
        shutil.copyfileobj(source, file, 2**20)
        file.flush()
        os.fsync(file.fileno())
    os.utime(part, ns=(log.written_us * 1000, log.written_us * 1000))
    part.replace(target)
