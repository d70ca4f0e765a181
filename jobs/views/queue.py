"""The page with the queue of a cluster: waiting runs in the order in which they start, and why each waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from clusters.visibility import clusters_of
from jobs.models import Run
from jobs.scheduling import queue_order
from jobs.scheduling.queue_order import QueuedRun
from trainhub_launch.scheduler.capacity import Demand, counted
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

MAX_ROWS = 100


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


@needs(Role.VIEWER)
def cluster_queue(request: WorkspaceRequest, name: str) -> HttpResponse:
    workspace = request.principal.workspace
    cluster = get_object_or_404(clusters_of(workspace), name=name)
    # The place counts the runs of all workspaces, so foreign runs are needed although their details are
    # hidden.
    waiting = queue_order.waiting_for(cluster)
    rows = [_row(place, item, workspace) for place, item in enumerate(waiting[:MAX_ROWS], 1)]
    own = next((row.run for row in rows if row.run is not None), None)
    return render(
        request,
        "jobs/_cluster_queue.html",
        {
            "rows": rows,
            "total": len(waiting),
            "more": len(waiting) - len(rows),
            "use": "" if own is None else queue_order.use_sentence(own, cluster),
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
