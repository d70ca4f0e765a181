"""Moves logs in rounds, which a worker begins every minute. Any of them may be killed at any moment."""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from jobs.log_archive import attempt_logs
from jobs.log_archive.attempt_logs import DiskFull, RoundBudget
from jobs.log_archive.open_archives import begin_archives, due_archives
from jobs.models import LogArchive
from workspaces.object_store.rows import is_store_used
from workspaces.object_store.waiting_uploads import waiting_uploads
from workspaces.servers.exclusive_work import only_once
from workspaces.servers.server_list import server_states

log = logging.getLogger(__name__)
MAX_ROUND_S = 60.0
# One log of 20 GiB may take so long.
LEASE_S = 600.0
ATTEMPTS = 500
# While the store is away, or slower than the disk, logs stay where they are: each that waits for its upload
# takes its room twice.
MAX_WAITING_BYTES = 4 * 2**30


def archive_due(now: datetime | None = None, *, max_s: float = MAX_ROUND_S) -> int:
    """Stores the logs of attempts that ended longer ago than LOG_ARCHIVE_AFTER_HOURS, and removes files of
    those that the object store has. Returns of how many attempts the last file went. Returns 0 at once
    without BLOB_STORE, during an upgrade of several servers, and if another worker is at it."""
    if not (is_store_used() and settings.LOG_ARCHIVE_AFTER_HOURS) or _is_upgrading():
        return 0
    with only_once("archive-logs", LEASE_S) as may:
        return _run_round(now or timezone.now(), time.monotonic() + max_s) if may else 0


def _is_upgrading() -> bool:
    """Returns whether a server of another version lives, which may not know where the logs are."""
    return any(row.is_living and row.version != settings.TRAINHUB_VERSION for row in server_states())


def _run_round(now: datetime, stop_at: float) -> int:
    budget = RoundBudget(stop_at, MAX_WAITING_BYTES - waiting_uploads().size_bytes)
    count = last = 0
    while not budget.is_late:
        added = 0 if budget.is_spent else begin_archives(now, ATTEMPTS)
        due = due_archives(now, timedelta(hours=settings.LOG_ARCHIVE_AFTER_HOURS)).filter(pk__gt=last)
        # While nothing can be stored, many may wait for that.
        batch = list((due.exclude(stored_at=None) if budget.is_spent else due)[:ATTEMPTS])
        for archive in batch:
            if budget.is_late:
                break
            last = archive.pk
            count += _advance(archive, now, budget)
        if not batch and not added:
            break
    return count


def _advance(archive: LogArchive, now: datetime, budget: RoundBudget) -> bool:
    """Makes the next step for one attempt. Returns whether that was the last."""
    try:
        if archive.stored_at is not None:
            return attempt_logs.remove_files(archive, now)
        if not budget.is_spent:
            attempt_logs.store_logs(archive, now, budget)
    except DiskFull as error:
        log.warning("%s", error)
        budget.close()
    except Exception:
        log.exception(
            "The logs of attempt %s of run %s could not be moved; the next round tries again",
            archive.attempt.number,
            archive.attempt.run_id,
        )
    return False
