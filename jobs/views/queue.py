"""What waits for a cluster, in the order in which it will start, and why each run waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from clusters.visibility import clusters_of
from jobs.models import Run
from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks import demand
from trainhub_launch.scheduler.capacity import counted
from trainhub_launch.spec_reader import read_spec
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

MOST_SHOWN = 100


@dataclass(frozen=True)
class Waiting:
    """`run` None: of another workspace, of which only the place in the queue is told."""

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
    waiting = list(Run.objects.queued().filter(spec__resources__cluster=cluster.name).defer("preview"))
    rows = [_row(place, run, workspace) for place, run in enumerate(waiting[:MOST_SHOWN], 1)]
    return render(
        request,
        "jobs/_cluster_queue.html",
        {"rows": rows, "total": len(waiting), "more": len(waiting) - len(rows)},
    )


def _row(place: int, run: Run, workspace: Workspace) -> Waiting:
    ours = run.workspace_id == workspace.pk
    return Waiting(
        place=place,
        run=run if ours else None,
        wants=_wants(run),
        why=run.sentence if ours else "",
        since=run.state_since,
        priority=run.priority,
    )


def _wants(run: Run) -> str:
    try:
        wanted = demand(read_spec(run.spec))
    except SpecError:
        return ""  # its next turn in the queue fails it, and says why
    each = counted(wanted.gpus, "GPU") if wanted.gpus else counted(wanted.slots, "process slot")
    return f"{counted(wanted.nodes, 'node')} × {each}" if wanted.nodes > 1 else each
