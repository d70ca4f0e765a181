"""The page with the queue of a cluster: waiting runs in the order in which they start, and why each waits.

A cluster that is a partition of a Slurm has Slurm's queue: our runs by their jobs, and others as counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from clusters.backends.slurm.states import STATES, JobPhase
from clusters.kinds import SLURM
from clusters.models import Allocation, Cluster
from clusters.slurm_partitions.partition_overview import other_jobs, partition_overview
from clusters.visibility import clusters_of
from jobs.models import Run
from jobs.queues import standings
from jobs.queues.demands import QueuedRun
from trainhub_launch.scheduler.capacity import Demand, counted
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

MAX_ROWS = 100
MAX_ACCOUNTS = 20
NOT_SUBMITTED = "not submitted"
# How a state looks: its tone and its icon.
WAITS = ("waiting", "clock")
_LOOKS = {
    JobPhase.STARTING: ("preparing", "wrench"),
    JobPhase.RUNNING: ("running", "play"),
    JobPhase.SUSPENDED: ("preparing", "pause"),
    JobPhase.ENDING: ("finalizing", "arrow-up-tray"),
}


@dataclass(frozen=True)
class Waiting:
    """A queued run. `run` is None for a run of another workspace, of which only place, demand and time are
    shown. `place` counts from 1. `wants`: the requested resources as text."""

    place: int
    run: Run | None
    wants: str
    why: str
    since: datetime
    priority: int


@dataclass(frozen=True)
class SlurmQueueRow:
    """A run and its job. `run` is None for a run of another workspace, of which only the job is shown.
    `job_id` None = it is not submitted yet. `look`: tone and icon of Slurm's state, `words`."""

    run: Run | None
    job_id: int | None
    words: str
    look: tuple[str, str]
    sentence: str
    nodes: Sequence[str]
    since: datetime


@needs(Role.VIEWER)
def cluster_queue(request: WorkspaceRequest, name: str) -> HttpResponse:
    workspace = request.principal.workspace
    cluster = get_object_or_404(clusters_of(workspace), name=name)
    if cluster.kind == SLURM:
        return _slurm_queue(request, cluster)
    # The place counts the runs of all workspaces, so foreign runs are needed although their details are
    # hidden.
    picture = standings.picture_of(cluster)
    first = standings.with_runs(picture.order[:MAX_ROWS])
    rows = [_row(picture.places[item.run.pk], item, workspace) for item in first]
    own = next((row.run for row in rows if row.run is not None), None)
    return render(
        request,
        "jobs/_cluster_queue.html",
        {
            "rows": rows,
            "total": len(picture.order),
            "more": max(0, len(picture.order) - MAX_ROWS),
            "use": "" if own is None else picture.use_sentence(own),
        },
    )


def _row(place: int, item: QueuedRun, workspace: Workspace) -> Waiting:
    run = item.run
    ours = run.workspace_id == workspace.pk
    return Waiting(
        place=place,
        run=run if ours else None,
        wants=_wants(item.needs),
        why=run.sentence if ours else "",
        since=run.state_since,
        priority=run.priority,
    )


def _wants(request: Demand) -> str:
    each = counted(request.gpus, "GPU") if request.gpus else counted(request.slots, "process slot")
    return f"{counted(request.nodes, 'node')} × {each}" if request.nodes > 1 else each


def _slurm_queue(request: WorkspaceRequest, cluster: Cluster) -> HttpResponse:
    overview = partition_overview(cluster)
    rows, total = _slurm_rows(cluster, request.principal.workspace)
    others = other_jobs(overview, by_account=request.principal.user.is_operator)
    context = {
        "rows": rows,
        "total": total,
        "more": max(0, total - MAX_ROWS),
        "others": others[:MAX_ACCOUNTS],
        "other_count": len(overview.others),
        "more_accounts": max(0, len(others) - MAX_ACCOUNTS),
    }
    return render(request, "jobs/_slurm_queue.html", context)


def _slurm_rows(cluster: Cluster, workspace: Workspace) -> tuple[list[SlurmQueueRow], int]:
    """Returns the runs with a job, the oldest first, and after them those that have none yet, MAX_ROWS at
    most, and how many there are."""
    allocations = list(Allocation.objects.filter(cluster=cluster, over_at=None).order_by("requested_at"))
    holders = {allocation.holder for allocation in allocations}
    own = Run.objects.filter(workspace=workspace).in_bulk(holders)
    unsubmitted = [item for item in standings.picture_of(cluster).order if item.pk not in holders]
    rows = [
        *(_job_row(allocation, own.get(allocation.holder)) for allocation in allocations[:MAX_ROWS]),
        *(
            _unsubmitted_row(item, workspace)
            for item in standings.with_runs(unsubmitted[: max(0, MAX_ROWS - len(allocations))])
        ),
    ]
    return rows, len(allocations) + len(unsubmitted)


def _job_row(allocation: Allocation, run: Run | None) -> SlurmQueueRow:
    state = STATES.get(allocation.word)
    return SlurmQueueRow(
        run=run,
        job_id=allocation.job_id,
        words=allocation.word.lower() or NOT_SUBMITTED,
        look=_LOOKS.get(state.phase, WAITS) if state else WAITS,
        sentence=(allocation.cancel_trouble or allocation.sentence) if run else "",
        nodes=() if allocation.cancel_trouble else allocation.nodes,
        since=allocation.requested_at,
    )


def _unsubmitted_row(item: QueuedRun, workspace: Workspace) -> SlurmQueueRow:
    is_ours = item.run.workspace_id == workspace.pk
    return SlurmQueueRow(
        run=item.run if is_ours else None,
        job_id=None,
        words=NOT_SUBMITTED,
        look=WAITS,
        sentence=item.run.sentence if is_ours else "",
        nodes=(),
        since=item.run.state_since,
    )
