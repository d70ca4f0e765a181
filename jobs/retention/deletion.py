"""Putting runs and experiments away: deleted ones can be brought back until they are purged
(`jobs.retention.run_purge`), days later.

All that is deleted in one act bears the same moment in `deleted_at`, so that one act brings it all back: a
run with those that are part of it, an experiment with its runs."""

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
from jobs.states import FINAL, Reason, RunState
from workspaces import audit
from workspaces.models import User, Workspace

PURGE_STARTED = datetime(1970, 1, 1, tzinfo=UTC)
"""In `deleted_at`: the purge has begun, and there is no way back."""


def delete(run: Run, who: User) -> bool:
    """Hide an ended run, or one from elsewhere, and what is part of it; False when it is deleted already.

    Raises Conflict while anything of it may still run.
    """
    with transaction.atomic():
        _lock(run.workspace_id)
        at = timezone.now()
        if not Run.objects.kept().filter(pk=run.pk).update(deleted_at=at):
            return False
        _mark_parts(at)
        _check_nothing_runs(Run.objects.filter(deleted_at=at))
        audit.record(who, "run.delete", str(run), run.workspace)
        _announce(run)
    return True


def restore(run: Run, who: User) -> bool:
    """Bring a deleted run back, with what was deleted along with it, and whatever it is part of; False when
    it is there.

    Raises Conflict where it is being purged, or its experiment is deleted.
    """
    with transaction.atomic():
        _lock(run.workspace_id)
        current = Run.objects.select_related("experiment").get(pk=run.pk)
        if current.deleted_at is None:
            return False
        for item in (current, *_deleted_parents(current)):
            if item.deleted_at == PURGE_STARTED:
                raise Conflict(
                    f"Run {item.number} is being deleted for good; it cannot be restored any more."
                )
            if item.experiment.deleted_at is not None:
                raise Conflict(
                    f"The experiment {item.experiment.name!r} of run {item.number} is deleted; restore "
                    "that first."
                )
        together = [item.pk for item in (current, *_deleted_children(current), *_deleted_parents(current))]
        if Run.objects.filter(pk__in=together).exclude(deleted_at=PURGE_STARTED).update(deleted_at=None) < len(
            together
        ):
            raise Conflict(f"Run {run.number} is being deleted for good; it cannot be restored any more.")
        audit.record(who, "run.restore", str(run), run.workspace)
        _announce(run)
    return True


def archive(run: Run, who: User) -> bool:
    """Take an ended run, and what is part of it, out of the lists; False when it is already. Raises Conflict
    while it runs."""
    if run.kind == "job" and run.state not in FINAL:
        raise Conflict(f"Run {run.number} is {run.state}; archive it when it has ended.")
    return _set_archived(run, who, timezone.now())


def unarchive(run: Run, who: User) -> bool:
    """Put it back; False when it is in the lists already."""
    return _set_archived(run, who, None)


def delete_experiment(experiment: Experiment, who: User) -> bool:
    """Hide an experiment with all its runs; False when it is deleted already. Raises Conflict while one of
    them may still run."""
    with transaction.atomic():
        _lock(experiment.workspace_id)
        at = timezone.now()
        if not Experiment.objects.filter(pk=experiment.pk, deleted_at=None).update(
            deleted_at=at, updated_at=at
        ):
            return False
        Run.objects.kept().filter(experiment=experiment).update(deleted_at=at)
        _mark_parts(at)
        _check_nothing_runs(Run.objects.filter(deleted_at=at))
        audit.record(who, "experiment.delete", experiment.name, experiment.workspace)
    return True


def restore_experiment(experiment: Experiment, who: User) -> bool:
    """Bring it back with the runs that were deleted along with it; False when it is there. Raises Conflict
    where it is being purged."""
    with transaction.atomic():
        _lock(experiment.workspace_id)
        current = Experiment.objects.get(pk=experiment.pk)
        if current.deleted_at is None:
            return False
        if current.deleted_at == PURGE_STARTED:
            raise Conflict(
                f"The experiment {current.name!r} is being deleted for good; it cannot be restored any more."
            )
        Run.objects.filter(workspace=current.workspace, deleted_at=current.deleted_at).update(deleted_at=None)
        Experiment.objects.filter(pk=current.pk).update(deleted_at=None, updated_at=timezone.now())
        audit.record(who, "experiment.restore", current.name, current.workspace)
    return True


def _lock(workspace_id: int) -> None:
    """Runs are made under the same lock: none appears in an experiment, or below a run, while that is
    deleted."""
    Workspace.objects.select_for_update().get(pk=workspace_id)


def _mark_parts(at: datetime) -> None:
    """What is part of what is deleted at that moment, and what is part of that, is deleted with it."""
    while Run.objects.kept().filter(parent__deleted_at=at).update(deleted_at=at):
        pass


def _check_nothing_runs(runs: RunQuerySet) -> None:
    active = runs.filter(kind="job").exclude(state__in=FINAL).order_by("number").first()
    if active is not None:
        raise Conflict(f"Run {active.number} is {active.state}; cancel it before you delete it.")
    lease = Lease.objects.filter(holder__in=runs.values("pk"), released_at=None).select_related("node").first()
    if lease is not None:
        raise Conflict(
            f"Node {lease.node} has not yet proved that {lease.label} is gone there; try again when it reports."
        )


def _deleted_parents(run: Run) -> Iterator[Run]:
    """What it is part of, as far up as that is deleted."""
    while run.parent_id is not None:
        run = Run.objects.select_related("experiment").get(pk=run.parent_id)
        if run.deleted_at is None:
            return
        yield run


def _deleted_children(run: Run) -> Iterator[Run]:
    """What is part of it and was deleted in the same act."""
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
