"""External runs, which a client logs. They have no spec and no node: the client sets their state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from jobs import lifecycle, tags
from jobs.models import Experiment, Run, RunEvent
from jobs.states import FINAL, Reason, RunKind, RunState
from live.publish import publish_on_commit
from live.topics import run_topic
from trainhub_launch.errors import SpecError
from workspaces.models import User, Workspace

# A client may change between all of these states; it may also resume a run that it had ended.
STATES = FINAL | {RunState.RUNNING}


@dataclass(frozen=True)
class ExternalRunStart:
    """Values of a new external run. `name` is not empty. `parent`: the job whose process logs this run, or
    the run that it is nested in."""

    name: str
    tags: Mapping[str, str] = field(default_factory=dict)
    parent: Run | None = None
    started_at: datetime | None = None


def create_run(experiment: Experiment, who: User | None, start: ExternalRunStart) -> Run:
    """Creates a running external run. Raises SpecError if its experiment has been deleted."""
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update().get(pk=experiment.workspace_id)
        if Experiment.objects.filter(pk=experiment.pk).exclude(deleted_at=None).exists():
            raise SpecError(
                "experiment_id",
                f"the experiment {experiment.name!r} is deleted; restore it, or choose another",
            )
        workspace.last_run_number += 1
        workspace.save(update_fields=["last_run_number"])
        now = timezone.now()
        run = Run.objects.create(
            number=workspace.last_run_number,
            workspace=workspace,
            experiment=experiment,
            kind=RunKind.EXTERNAL,
            display_name=start.name,
            parent=start.parent,
            state=RunState.RUNNING,
            created_by=who,
            started_at=start.started_at or now,
            state_since=now,
        )
        tags.set_tags(run, start.tags)
        origin = f"Started by run {start.parent.number}." if start.parent else "Started by its client."
        RunEvent.objects.create(
            run=run, to_state=RunState.RUNNING, message=origin, actor=_name(who), at=run.created_at
        )
        lifecycle.publish_change(run, RunState.RUNNING, Reason.NONE)
        if start.parent is not None:
            publish_on_commit(
                run_topic(start.parent.pk), {"type": "child.begun", "run": start.parent.pk, "child": run.pk}
            )
    return run


def set_state(
    run: Run,
    to: RunState,
    who: User | None,
    *,
    at: datetime | None = None,
    message: str = "Reported by its client.",
    only_from: RunState | None = None,
) -> bool:
    """Sets the state that the client reports; returns False if the run is in that state already, or is not in
    `only_from`.

    `at`: when it ended, by the client's clock; `message`: for its journal. Only this function writes the
    state of external runs; `lifecycle.advance` writes that of jobs.
    """
    if to not in STATES:
        raise ValueError(to)
    now = timezone.now()
    ended_at = (at or now) if to in FINAL else None
    with transaction.atomic():
        current = Run.objects.select_for_update().filter(pk=run.pk, kind=RunKind.EXTERNAL).first()
        if current is None or only_from not in (None, current.state):
            return False
        if current.state == to:
            if at is not None and to in FINAL:
                Run.objects.filter(pk=run.pk).update(finished_at=at)
            return False
        Run.objects.filter(pk=run.pk, kind=RunKind.EXTERNAL).update(
            state=to, finished_at=ended_at, state_since=now
        )
        RunEvent.objects.create(
            run=current,
            from_state=current.state,
            to_state=to,
            message=message,
            actor=_name(who),
            at=now,
        )
        lifecycle.publish_change(current, to, Reason.NONE)
    return True


def _name(who: User | None) -> str:
    return who.get_username() if who else "hub"
