"""Deletes, restores and archives runs and experiments. Deleted ones can be restored until they are purged
(`jobs.retention.run_purge`) some days later.

Everything that one action deletes has the same time in `deleted_at`, so that one action restores it all: a
run with its nested runs, an experiment with its runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from django.db import transaction
from django.utils import timezone

from clusters.models import Lease
from jobs import lifecycle
from jobs.errors import Conflict
from jobs.models import Experiment, Run
from jobs.querysets import RunQuerySet
from jobs.states import FINAL, Reason, RunKind, RunState
from workspaces import audit
from workspaces.models import User, Workspace

# Value of `deleted_at` once the purge has begun and a restore is no longer possible.
PURGE_STARTED = datetime(1970, 1, 1, tzinfo=UTC)


def delete(run: Run, who: User) -> bool:
    """Deletes an ended or external run and its nested runs; returns False if it is deleted already.

    Raises Conflict while one of them may still run.
    """
    with transaction.atomic():
        _lock(run.workspace_id)
        at = timezone.now()
        # The time identifies everything that this action deletes. A Conflict below undoes the update.
        if not Run.objects.not_deleted().filter(pk=run.pk).update(deleted_at=at):
            return False
        _mark_parts(at)
        _check_nothing_runs(Run.objects.filter(deleted_at=at))
        audit.record(who, "run.delete", str(run), run.workspace)
        _announce(run)
    return True


def restore(run: Run, who: User) -> bool:
    """Restores a deleted run with the runs deleted together with it, and its parents.

    Returns False if it is not deleted. Raises Conflict if it is being purged or its experiment is deleted.
    """
    with transaction.atomic():
        _lock(run.workspace_id)
        current = Run.objects.select_related("experiment").get(pk=run.pk)
        if current.deleted_at is None:
            return False
        for item in (current, *_deleted_parents(current)):
            if item.deleted_at == PURGE_STARTED:
                raise Conflict(
                    f"Run {item.number} is being deleted permanently, so it can no longer be restored."
                )
            if item.experiment.deleted_at is not None:
                raise Conflict(
                    f"The experiment {item.experiment.name!r} of run {item.number} is deleted; restore "
                    "that first."
                )
        together = [item.pk for item in (current, *_deleted_children(current), *_deleted_parents(current))]
        # The purge does not take the workspace's lock, so it may have begun since the check above. Raising
        # undoes the restore of the other runs.
        if Run.objects.filter(pk__in=together).exclude(deleted_at=PURGE_STARTED).update(
            deleted_at=None
        ) < len(together):
            raise Conflict(f"Run {run.number} is being deleted permanently, so it can no longer be restored.")
        audit.record(who, "run.restore", str(run), run.workspace)
        _announce(run)
    return True


def archive(run: Run, who: User) -> bool:
    """Archives an ended run and its nested runs, so that lists omit them; returns False if it is archived
    already.

    Raises Conflict while it runs."""
    if run.kind == RunKind.JOB and run.state not in FINAL:
        raise Conflict(f"Run {run.number} is {run.state}; archive it when it has ended.")
    return _set_archived(run, who, timezone.now())


def unarchive(run: Run, who: User) -> bool:
    """Returns an archived run to the lists; returns False if it is not archived."""
    return _set_archived(run, who, None)


def delete_experiment(experiment: Experiment, who: User) -> bool:
    """Deletes an experiment with all its runs; returns False if it is deleted already.

    Raises Conflict while one of them may still run."""
    with transaction.atomic():
        _lock(experiment.workspace_id)
        at = timezone.now()
        if not Experiment.objects.filter(pk=experiment.pk, deleted_at=None).update(
            deleted_at=at, updated_at=at
        ):
            return False
        Run.objects.not_deleted().filter(experiment=experiment).update(deleted_at=at)
        _mark_parts(at)
        _check_nothing_runs(Run.objects.filter(deleted_at=at))
        audit.record(who, "experiment.delete", experiment.name, experiment.workspace)
    return True


def restore_experiment(experiment: Experiment, who: User) -> bool:
    """Restores an experiment with the runs deleted together with it; returns False if it is not deleted.

    Raises Conflict if it is being purged."""
    with transaction.atomic():
        _lock(experiment.workspace_id)
        current = Experiment.objects.get(pk=experiment.pk)
        if current.deleted_at is None:
            return False
        if current.deleted_at == PURGE_STARTED:
            raise Conflict(
                f"The experiment {current.name!r} is being deleted permanently, so it can no longer be "
                "restored."
            )
        # Runs of the experiment that were deleted before have another time and stay deleted.
        Run.objects.filter(workspace=current.workspace, deleted_at=current.deleted_at).update(deleted_at=None)
        Experiment.objects.filter(pk=current.pk).update(deleted_at=None, updated_at=timezone.now())
        audit.record(who, "experiment.restore", current.name, current.workspace)
    return True


def _lock(workspace_id: int) -> None:
    """Locks the workspace. Runs are created under the same lock, so that none appears in an experiment or
    below a run while it is being deleted."""
    Workspace.objects.select_for_update().get(pk=workspace_id)


def _mark_parts(at: datetime) -> None:
    """Deletes the nested runs of the runs deleted at that time, level by level."""
    while Run.objects.not_deleted().filter(parent__deleted_at=at).update(deleted_at=at):
        pass


def _check_nothing_runs(runs: RunQuerySet) -> None:
    active = runs.filter(kind=RunKind.JOB).exclude(state__in=FINAL).order_by("number").first()
    if active is not None:
        raise Conflict(f"Run {active.number} is {active.state}; cancel it before you delete it.")
    lease = (
        Lease.objects.filter(holder__in=runs.values("pk"), released_at=None).select_related("node").first()
    )
    if lease is not None:
        raise Conflict(
            f"Node {lease.node} has not yet confirmed that {lease.label} has ended there; try again when it "
            "reports."
        )


def _deleted_parents(run: Run) -> Iterator[Run]:
    """Yields the run's parents, as long as they are deleted."""
    while run.parent_id is not None:
        run = Run.objects.select_related("experiment").get(pk=run.parent_id)
        if run.deleted_at is None:
            return
        yield run


def _deleted_children(run: Run) -> Iterator[Run]:
    """Yields the nested runs that were deleted by the same action."""
    level = [run]
    while level:
        level = list(Run.objects.filter(parent__in=level, deleted_at=run.deleted_at))
        yield from level


def _set_archived(run: Run, who: User, at: datetime | None) -> bool:
    with transaction.atomic():
        changed = Run.objects.filter(pk=run.pk, archived_at__isnull=at is not None).update(archived_at=at)
        if not changed:
            return False
        level = [run.pk]
        while level:
            parts = Run.objects.filter(parent__in=level)
            level = list(parts.values_list("pk", flat=True))
            parts.update(archived_at=at)
        audit.record(who, "run.unarchive" if at is None else "run.archive", str(run), run.workspace)
        _announce(run)
    return True


def _announce(run: Run) -> None:
    lifecycle.publish_change(run, RunState(run.state), Reason(run.reason))
