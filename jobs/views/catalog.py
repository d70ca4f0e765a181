"""Pages that list the workspace's experiments and the environments in which its runs can be started."""

from __future__ import annotations

from django.db.models import Count, Max, Q
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from clusters.node_reports.heartbeat import status
from clusters.node_reports.hub_uptime import listening_window
from clusters.visibility import visible_nodes
from jobs.environments import CURATED
from jobs.models import Experiment, Run
from jobs.sources.first_use import first_uses
from jobs.states import ACTIVE, RunState
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

WITHOUT_DELETED_RUNS = Q(runs__deleted_at=None)


@needs(Role.VIEWER)
def experiments(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.principal.workspace
    experiments = list(
        Experiment.objects.filter(workspace=workspace, deleted_at=None)
        .annotate(
            run_count=Count("runs", filter=WITHOUT_DELETED_RUNS),
            active_count=Count("runs", filter=WITHOUT_DELETED_RUNS & Q(runs__state__in=ACTIVE)),
            failed_count=Count("runs", filter=WITHOUT_DELETED_RUNS & Q(runs__state=RunState.FAILED)),
            last_number=Max("runs__number", filter=WITHOUT_DELETED_RUNS),
        )
        .order_by("-last_number", "name")
    )
    numbers = [experiment.last_number for experiment in experiments if experiment.last_number]
    last = {
        run.number: run
        # Numbers are unique within a workspace, so one query finds the latest run of every experiment.
        for run in Run.objects.for_workspace(workspace).filter(number__in=numbers).defer("preview", "spec")
    }
    rows = [(experiment, last.get(experiment.last_number)) for experiment in experiments]
    return render(
        request, "jobs/experiments.html", {"rows": rows, "may_act": request.principal.may(Role.CONTRIBUTOR)}
    )


@needs(Role.VIEWER)
def environments(request: WorkspaceRequest) -> HttpResponse:
    """Lists the curated environments, and each visible node with the Python interpreters that it reports."""
    now = timezone.now()
    span = listening_window(now)
    nodes = [
        (node, str(status(node, now, span)))
        for node in visible_nodes(request.principal.workspace).filter(revoked_at=None)
    ]
    costs = first_uses(request.principal.workspace)
    curated = [(environment, costs[environment.name]) for environment in CURATED]
    return render(request, "jobs/environments.html", {"curated": curated, "nodes": nodes})
