"""Removes what the rules in force say, in small batches: a kill at any point loses nothing but time.

A batch is marked in a short transaction under the workspace's lock, so that nothing that somebody protects at
the same time is in it. Then its data goes, in transactions of their own, and at last the marks are completed.
What was marked and not completed is removed by the next round, whatever the rules say by then: part of it may
be gone."""

from __future__ import annotations

import logging
import time
from datetime import datetime

from django.db import transaction
from django.db.models import Max, Min
from django.utils import timezone

from jobs.models import DataRemoval, Run
from jobs.retention_rules import contents, rule_changes
from jobs.retention_rules.due_runs import due_runs
from jobs.retention_rules.rules import rules_in_force
from jobs.states import DataKind
from jobs.task_messages import retention_soon
from workspaces import audit
from workspaces.models import Workspace
from workspaces.servers.exclusive_work import only_once
from workspaces.stored_files import deletions

log = logging.getLogger(__name__)
# Runs in a batch: so many are marked under the lock of the workspace, for which submissions wait.
BATCH_RUNS = 50
MAX_ROUND_S = 300.0
ACTOR = "hub"


def remove_due(now: datetime | None = None, *, max_s: float = MAX_ROUND_S) -> int:
    """Puts stricter rules in force whose time has come, and removes what is due. Returns of how many runs
    something was removed, each kind counted by itself. Stops after `max_s` seconds and asks for another round
    then; returns 0 at once if another worker is at it."""
    with only_once("retention", 2 * max_s) as may:
        if not may:
            return 0
        moment, stop_at = now or timezone.now(), time.monotonic() + max_s
        workspaces = list(Workspace.objects.filter(archived_at=None).order_by("pk"))
        for workspace in workspaces:
            rule_changes.apply_rules(workspace, moment)
        count, is_done = _finish_interrupted(stop_at)
        for workspace in workspaces:
            for kind in DataKind:
                more, is_done_here = _remove_kind(workspace, kind, moment, stop_at)
                count += more
                is_done = is_done and is_done_here
    if not is_done:
        # Not if a backup holds deletions back: the hourly round comes anyway.
        retention_soon()
    return count


def _remove_kind(workspace: Workspace, kind: DataKind, now: datetime, stop_at: float) -> tuple[int, bool]:
    """Removes what is due of one kind. Returns of how many runs, and False if the time is over."""
    count, since = 0, None
    while time.monotonic() < stop_at:
        with deletions.allowed() as is_allowed:
            if not is_allowed:
                log.info("A backup is running; the retention rules wait for its end")
                return count, True
            candidates, since = _next_candidates(workspace, kind, now, since)
            if not candidates:
                return count, True
            if batch := _mark_batch(workspace, kind, candidates, now):
                count += _remove_batch(workspace, kind, batch)
    return count, False


def _next_candidates(
    workspace: Workspace, kind: DataKind, now: datetime, since: datetime | None
) -> tuple[list[str], datetime | None]:
    """Returns the next runs that are due, and when the last of them ended: from there the search goes on, so
    that it does not read again what is done. No lock is held."""
    due = due_runs(workspace, kind, rules_in_force(workspace)[kind], now)
    if since is not None:
        due = due.filter(finished_at__gte=since)
    rows = list(due.values_list("pk", "finished_at")[:BATCH_RUNS])
    return [run for run, _ in rows], rows[-1][1] if rows else None


def _mark_batch(workspace: Workspace, kind: DataKind, candidates: list[str], now: datetime) -> list[str]:
    """Marks those of the runs that are still due under the lock, and returns their ids."""
    sizes = contents.bytes_by_run(kind, candidates)
    with transaction.atomic():
        Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
        rule = rules_in_force(workspace)[kind]
        due = due_runs(workspace, kind, rule, now).filter(pk__in=candidates)
        batch = list(due.values_list("pk", flat=True))
        started_at = timezone.now()
        DataRemoval.objects.bulk_create(
            [
                DataRemoval(
                    run_id=run, kind=kind, days=rule.days or 0, size_bytes=sizes[run], started_at=started_at
                )
                for run in batch
            ],
            update_conflicts=True,
            update_fields=["days", "size_bytes", "started_at", "done_at"],
            unique_fields=["run", "kind"],
        )
        contents.close(kind, batch)
    return batch


def _remove_batch(workspace: Workspace, kind: DataKind, batch: list[str]) -> int:
    """Removes the data of marked runs, and returns of how many: 0 if there was an error. They stay marked
    then, and the next round tries again."""
    try:
        contents.remove(kind, batch)
    except Exception:
        log.exception("The %s of some runs could not be removed; the others go on", kind.noun)
        return 0
    rows = DataRemoval.objects.filter(run__in=batch, kind=kind, done_at=None)
    with transaction.atomic():
        size = sum(rows.values_list("size_bytes", flat=True))
        span = Run.objects.filter(pk__in=batch).aggregate(first=Min("number"), last=Max("number"))
        rows.update(done_at=timezone.now())
        runs = f"{len(batch)} run{'' if len(batch) == 1 else 's'}"
        subject = f"the {kind.noun} of {runs}, numbers {span['first']} to {span['last']}"
        audit.record(ACTOR, "retention.removed", subject, workspace, kind=kind.value, bytes=size, runs=batch)
    return len(batch)


def _finish_interrupted(stop_at: float) -> tuple[int, bool]:
    """Removes the rest of what an earlier round has marked. Returns of how many runs, and False if the time
    is over."""
    count, last = 0, 0
    while time.monotonic() < stop_at:
        rows = DataRemoval.objects.filter(done_at=None, pk__gt=last).order_by("pk").select_related("run")
        some = list(rows.only("kind", "run__workspace")[:BATCH_RUNS])
        if not some:
            return count, True
        last = some[-1].pk
        with deletions.allowed() as is_allowed:
            if not is_allowed:
                return count, True
            groups: dict[tuple[int, str], list[str]] = {}
            for row in some:
                groups.setdefault((row.run.workspace_id, row.kind), []).append(row.run_id)
            for (workspace_id, kind), batch in groups.items():
                count += _remove_batch(Workspace.objects.get(pk=workspace_id), DataKind(kind), batch)
    return count, False
