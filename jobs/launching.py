"""The verbs that move a run: launch, cancel, delete."""

from __future__ import annotations

import threading

from django.db import transaction
from django.utils import timezone

from clusters.models import Lease
from clusters.telemetry import keeping
from jobs import lifecycle, logstore, placing, scaling
from jobs.errors import Conflict
from jobs.models import AttemptNode, Run
from jobs.previewing import Preview, preview
from jobs.queueing import wake_soon
from jobs.states import FINAL, Reason, RunState
from jobs.submitting import SubmitRefused, clone_spec, submit
from workspaces import audit
from workspaces.models import User

__all__ = ["Preview", "SubmitRefused", "cancel", "clone_spec", "delete", "launch", "launch_queued", "preview", "submit"]


_walking = threading.Lock()
_asked = threading.Event()


def launch(run_id: str) -> None:
    """Launch this run if its turn has come; it never delays one that waits in front of it."""
    if Run.objects.filter(pk=run_id, state=RunState.QUEUED).exists():
        launch_queued()


def launch_queued() -> None:
    """Launch what fits. Asked while another thread is at it, that one looks once more, and this one goes on."""
    _asked.set()
    while _asked.is_set() and _walking.acquire(blocking=False):
        try:
            _asked.clear()
            placing.walk()
            if scaling.tick():
                # Whoever waits for what was just asked for is told so.
                placing.walk()
        finally:
            _walking.release()


def cancel(run: Run, who: User) -> bool:
    """Ask for the run's end; at once where no node has it yet. False when it is over or being canceled already."""
    name = who.get_username()
    with transaction.atomic():
        current = Run.objects.select_for_update().get(pk=run.pk)
        parts = list(
            AttemptNode.objects.select_related("node").filter(attempt__run=run, attempt__number=current.attempt, settled_at=None)
        )
        unclaimed = not any(part.claimed_at for part in parts)
        early = current.state == RunState.QUEUED or (current.state == RunState.PROVISIONING and unclaimed)
        to = RunState.CANCELED if early else RunState.CANCEL_REQUESTED
        message = "" if early else f"{name} asked for the end of the run."
        if not lifecycle.advance(run.pk, to, Reason.CANCELED, facts={"who": name}, actor=name, message=message):
            return False
        audit.record(who, "run.cancel", str(run), run.workspace)
        for part in parts:
            if part.claimed_at is None:
                lifecycle.settle(part, run.pk, current.attempt, timezone.now())
        if not early:
            for part in parts:
                wake_soon(part.node, run.pk, current.attempt)
    return True


def delete(run: Run, who: User) -> None:
    """Remove an ended run with its logs and its list of outputs. Raises Conflict while anything of it may still run."""
    with transaction.atomic():
        current = Run.objects.select_for_update().get(pk=run.pk)
        if current.state not in FINAL:
            raise Conflict(f"Run {run.number} is {current.state}; cancel it before you delete it.")
        held = Lease.objects.filter(holder=run.pk, released_at=None).select_related("node").first()
        if held is not None:
            raise Conflict(f"Node {held.node} has not yet proved that run {run.number} is gone there; try again when it reports.")
        audit.record(who, "run.delete", str(run), run.workspace)
        keeping.forget(run.pk)
        current.delete()
        transaction.on_commit(lambda: logstore.remove(run.pk))
