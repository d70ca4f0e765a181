"""Purges runs that were deleted long enough ago: rows in small batches, logs, stored curves, and files that
nothing else references.

`deleted_at` is set to PURGE_STARTED first and the run's own row is deleted last, so that an interrupted purge
continues later."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from clusters.models import Lease
from clusters.telemetry import attempt_curves
from jobs.errors import Conflict
from jobs.logs import log_removal
from jobs.models import Experiment, Run
from jobs.retention.deletion import PURGE_STARTED
from jobs.retention.purge_registry import RUN_TABLES
from jobs.sources import snapshots
from jobs.task_messages import purge_soon
from workspaces import audit
from workspaces.models import User
from workspaces.servers.exclusive_work import only_once
from workspaces.stored_files import blob_gc, deletions

log = logging.getLogger(__name__)
BATCH = 500
MAX_PURGE_S = 600.0


def due_at(deleted_at: datetime) -> datetime:
    """Returns when something deleted at that time is purged."""
    return deleted_at + timedelta(days=settings.PURGE_DAYS)


def purge_now(run: Run, who: User) -> None:
    """Starts the purge of a deleted run and its nested runs. Raises Conflict if it is not deleted."""
    with transaction.atomic():
        if not Run.objects.deleted().filter(pk=run.pk).update(deleted_at=PURGE_STARTED):
            raise Conflict(f"Run {run.number} is not deleted; delete it first.")
        audit.record(who, "run.purge", str(run), run.workspace)
        purge_soon()


def purge_experiment_now(experiment: Experiment, who: User) -> None:
    """Starts the purge of a deleted experiment with all its runs. Raises Conflict if it is not deleted."""
    with transaction.atomic():
        if (
            not Experiment.objects.exclude(deleted_at=None)
            .filter(pk=experiment.pk)
            .update(deleted_at=PURGE_STARTED)
        ):
            raise Conflict(f"The experiment {experiment.name!r} is not deleted; delete it first.")
        Run.objects.deleted().filter(experiment=experiment).update(deleted_at=PURGE_STARTED)
        audit.record(who, "experiment.purge", experiment.name, experiment.workspace)
        purge_soon()


def purge_due(
    before: Callable[[Run], object], *, now: datetime | None = None, max_s: float = MAX_PURGE_S
) -> int:
    """Purges what is due; returns the number of runs purged. Calls `before` for each run, to save what must
    outlive it.

    Stops after `max_s` seconds; the next call continues. Returns 0 at once if somebody else is purging."""
    with only_once("purge", 2 * max_s) as may:
        if not may:
            return 0
        until = (now or timezone.now()) - timedelta(days=settings.PURGE_DAYS)
        return _purge_all(until, before, time.monotonic() + max_s)


def delete_rows(rows: QuerySet[Any]) -> None:
    """Deletes rows, and the files that only they reference.

    Each batch is a transaction of its own, so that other writers are not blocked for long."""
    names_files = any(field.name == "sha256" for field in rows.model._meta.fields)
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        batch = rows.model._default_manager.filter(pk__in=keys)
        # If several rows name a file, the latest time must win: `free` does not delete a file that was stored
        # again since.
        named = batch.order_by("created_at").values_list("sha256", "created_at") if names_files else ()
        freed = {sha256: stored_at.timestamp() for sha256, stored_at in named}
        batch.delete()
        blob_gc.free(freed)


def _purge_all(until: datetime, before: Callable[[Run], object], stop_at: float) -> int:
    count = 0
    used: set[tuple[int, str]] = set()
    Experiment.objects.filter(deleted_at__lte=until).update(deleted_at=PURGE_STARTED)
    # PURGE_STARTED lies before every limit, so interrupted and requested purges are found here, too, and
    # first.
    for run in _each_once(Run.objects.filter(deleted_at__lte=until)):
        if time.monotonic() > stop_at:
            log.info("There is more to purge than fits into %s s; it goes on the next time", MAX_PURGE_S)
            break
        with deletions.allowed() as is_allowed:
            if not is_allowed:
                log.info("A backup is running; deleted runs are purged after it")
                break
            # Read before the rows are deleted: only the spec names the snapshot of a run.
            used |= {(item.workspace_id, item.spec.get("source", {}).get("id", "")) for item in _lineage(run)}
            count += _purge(run, before)
    else:
        _purge_experiments()
    snapshots.release_unused(used)
    if count:
        log.info("%s runs that were deleted are gone for good", count)
    return count


def _purge(run: Run, before: Callable[[Run], object]) -> int:
    """Purges the run and its nested runs, deepest first; returns how many were purged. The next call retries
    those that fail."""
    count = 0
    for item in reversed(_lineage(run)):
        try:
            count += _purge_one(item, before)
        except Conflict as error:
            log.info("%s", error)
        except Exception:
            log.exception("Run %s could not be purged; the others go on", item.pk)
    return count


def _lineage(run: Run) -> list[Run]:
    """Returns the run and its nested runs. Detaches nested runs that are not deleted."""
    runs = level = [run]
    while level:
        Run.objects.not_deleted().filter(parent__in=level).update(parent=None)
        level = list(Run.objects.filter(parent__in=level).defer("preview"))
        runs = [*runs, *level]
    return runs


def _purge_one(run: Run, before: Callable[[Run], object]) -> bool:
    # An open lease means that processes of the run may still be writing logs.
    if Lease.objects.filter(holder=run.pk, released_at=None).exists():
        raise Conflict(f"{run} still holds GPUs and is purged later.")
    if not Run.objects.deleted().filter(pk=run.pk).update(deleted_at=PURGE_STARTED):
        return False
    before(run)
    log_removal.remove_run(run.pk)
    attempt_curves.delete_curves(run.pk)
    for belonging in RUN_TABLES:
        delete_rows(belonging.for_runs(run.pk))
    run.delete()
    return True


def _purge_experiments() -> None:
    for experiment in Experiment.objects.filter(deleted_at=PURGE_STARTED, runs=None):
        for belonging in RUN_TABLES:
            delete_rows(belonging.without_run(experiment))
        experiment.delete()


def _each_once(runs: QuerySet[Run]) -> Iterator[Run]:
    """Yields runs one by one until none is left; a run that could not be purged is yielded only once."""
    failed: list[str] = []
    # Queried again for each run, because a purge takes its nested runs with it and may take minutes. By the
    # index run_deleted alone: of all that one action deleted, any may be the next, and nothing is sorted.
    while (run := runs.exclude(pk__in=failed).order_by("deleted_at")[:1].first()) is not None:
        yield run
        if Run.objects.filter(pk=run.pk).exists():
            failed.append(run.pk)
