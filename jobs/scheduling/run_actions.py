"""The actions on a run: submit, launch and cancel, and those of `jobs.retention.deletion`."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from clusters.kinds import backend_of
from clusters.models import Cluster
from jobs import lifecycle
from jobs.errors import Conflict
from jobs.models import AttemptNode, Run
from jobs.retention.deletion import archive, delete, restore, unarchive
from jobs.scheduling import cluster_scaling, queue_placement
from jobs.scheduling.run_preview import Preview, preview
from jobs.scheduling.submission import SubmitRefused, clone_spec, resumed_spec, submit, submit_with_findings
from jobs.states import Reason, RunKind, RunState
from jobs.task_messages import cancel_outside_soon, wake_soon
from workspaces import audit
from workspaces.database.compiled_queries import compiled
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
    "resumed_spec",
    "submit",
    "submit_with_findings",
    "unarchive",
]


ALL_CLUSTERS = ""
# After a pass over a long queue, the next one waits for as long as that took, and at most so many seconds.
MAX_PAUSE_S = 0.25
_launch_lock = threading.Lock()
# Names of the clusters whose queues are to be launched, or ALL_CLUSTERS, each with the greatest age of what
# is read about its nodes; guarded by `_pending_lock`.
_pending: dict[str, float] = {}
_pending_lock = threading.Lock()


@dataclass
class _Pace:
    """Until when (`time.monotonic`) no pass begins. Only who has `_launch_lock` uses it."""

    pause_end: float = 0.0


_pace = _Pace()


def launch(run_id: str, max_age_s: float = 0.0) -> None:
    """Launches the runs that fit in the queue of this run's cluster, in queue order. `max_age_s`: what is
    read about the nodes may be so old, since only a run has come and no resources have become free.

    Does nothing if the run is no longer queued, so calls may be repeated.
    """
    for (spec,) in _queued_specs(run_id):
        _launch(spec.get("resources", {}).get("cluster", ALL_CLUSTERS), max_age_s)


@compiled
def _queued_specs(run_id: str) -> QuerySet[Run, tuple[dict[str, Any]]]:
    return Run.objects.filter(pk=run_id, state=RunState.QUEUED).values_list("spec")


def launch_queued() -> None:
    """Launches the runs that fit, in every cluster."""
    _launch(ALL_CLUSTERS)


def _launch(cluster: str, max_age_s: float = 0.0) -> None:
    """Launches, or returns at once if another thread is launching: that thread then makes one more pass."""
    with _pending_lock:
        _pending[cluster] = min(max_age_s, _pending.get(cluster, max_age_s))
    # Not waited for: many submissions at once need one pass over the queue, not one each.
    while _pending and _launch_lock.acquire(blocking=False):
        try:
            # Whatever comes meanwhile is part of the same pass.
            time.sleep(max(0.0, _pace.pause_end - time.monotonic()))
            with _pending_lock:
                names = None if ALL_CLUSTERS in _pending else frozenset(_pending)
                age_s = min(_pending.values(), default=0.0)
                _pending.clear()
            # Cleared before the pass: what is submitted while it runs is launched by another round of this
            # loop.
            begin = time.monotonic()
            is_long = queue_placement.place_queued(names, age_s)
            if cluster_scaling.scale_clusters(only=names):
                # The second pass updates the sentences of runs that now wait for requested machines.
                queue_placement.place_queued(names)
            end = time.monotonic()
            _pace.pause_end = end + min(end - begin, MAX_PAUSE_S) if is_long else end
        finally:
            _launch_lock.release()


def cancel(run: Run, who: User) -> bool:
    """Requests the run's cancellation; cancels it at once if no node has claimed it yet.

    Returns False if the run has ended or is being canceled already. Raises Conflict for an external run.
    """
    if run.kind == RunKind.EXTERNAL:
        raise Conflict(
            f"Run {run.number} is external: TrainHub did not start it. Stop the program that logs it."
        )
    name = who.get_username()
    with transaction.atomic():
        current = Run.objects.select_for_update().get(pk=run.pk)
        parts = list(
            AttemptNode.objects.select_related("node").filter(
                attempt__run=run, attempt__number=current.attempt, settled_at=None
            )
        )
        # No node has seen it, so nobody has to be asked to stop anything.
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
        if early:
            if _is_queued_outside(current):
                cancel_outside_soon(run.pk)
        else:
            for part in parts:
                wake_soon(part.node, run.pk, current.attempt)
    return True


def _is_queued_outside(run: Run) -> bool:
    name = run.spec.get("resources", {}).get("cluster", "")
    cluster = Cluster.objects.filter(name=name).first()
    return cluster is not None and backend_of(cluster).scheduler is not None
