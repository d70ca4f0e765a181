"""The verbs that move a run: launch, cancel; and those that put it away (jobs.retention.deletion)."""

from __future__ import annotations

import threading

from django.db import transaction
from django.utils import timezone

from jobs import external, lifecycle
from jobs.errors import Conflict
from jobs.models import AttemptNode, Run
from jobs.retention.deletion import archive, delete, restore, unarchive
from jobs.scheduling import cluster_scaling, queue_placement
from jobs.scheduling.run_preview import Preview, preview
from jobs.scheduling.submission import SubmitRefused, clone_spec, submit
from jobs.states import Reason, RunState
from jobs.task_messages import wake_soon
from workspaces import audit
from workspaces.models import User

__all__ = [
    "Preview",
    "SubmitRefused",
    "archive",
    "cancel",
    "clone_spec",
    "delete",
    "launch",
    "launch_queued",
    "preview",
    "restore",
    "submit",
    "unarchive",
]


_walking = threading.Lock()
_asked = threading.Event()


def launch(run_id: str) -> None:
    """Launch this run if its turn has come; it never delays one that waits in front of it."""
    if Run.objects.filter(pk=run_id, state=RunState.QUEUED).exists():
        launch_queued()


def launch_queued() -> None:
    """Launch what fits. Asked while another thread is at it, that one looks once more, and this one goes
    on."""
    _asked.set()
    while _asked.is_set() and _walking.acquire(blocking=False):
        try:
            _asked.clear()
            queue_placement.walk()
            if cluster_scaling.tick():
                # Whoever waits for what was just asked for is told so.
                queue_placement.walk()
        finally:
            _walking.release()


def cancel(run: Run, who: User) -> bool:
    """Ask for the run's end; at once where no node has it yet. False when it is over or being canceled
    already.

    Raises Conflict for a run from elsewhere.
    """
    if run.kind == external.KIND:
        raise Conflict(
            f"Run {run.number} was logged from elsewhere; end the program that logs it, where that runs."
        )
    name = who.get_username()
    with transaction.atomic():
        current = Run.objects.select_for_update().get(pk=run.pk)
        parts = list(
            AttemptNode.objects.select_related("node").filter(
                attempt__run=run, attempt__number=current.attempt, settled_at=None
            )
        )
        unclaimed = not any(part.claimed_at for part in parts)
        early = current.state == RunState.QUEUED or (current.state == RunState.PROVISIONING and unclaimed)
        to = RunState.CANCELED if early else RunState.CANCEL_REQUESTED
        message = "" if early else f"{name} asked for the end of the run."
        if not lifecycle.advance(
            run.pk, to, Reason.CANCELED, facts={"who": name}, actor=name, message=message
        ):
            return False
        audit.record(who, "run.cancel", str(run), run.workspace)
        for part in parts:
            if part.claimed_at is None:
                lifecycle.settle(part, run.pk, current.attempt, timezone.now())
        if not early:
            for part in parts:
                wake_soon(part.node, run.pk, current.attempt)
    return True
