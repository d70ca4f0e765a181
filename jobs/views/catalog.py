"""Experiments and environments: what runs are grouped by, and what they run in."""

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
from jobs.states import ACTIVE, RunState
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

KEPT = Q(runs__deleted_at=None)


@needs(Role.VIEWER)
def experiments(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.principal.workspace
    found = list(
        Experiment.objects.filter(workspace=workspace, deleted_at=None)
        .annotate(
            run_count=Count("runs", filter=KEPT),
            active_count=Count("runs", filter=KEPT & Q(runs__state__in=ACTIVE)),
            failed_count=Count("runs", filter=KEPT & Q(runs__state=RunState.FAILED)),
            last_number=Max("runs__number", filter=KEPT),
        )
        .order_by("-last_number", "name")
    )
    numbers = [experiment.last_number for experiment in found if experiment.last_number]
    last = {
        run.number: run
        for run in Run.objects.for_workspace(workspace).filter(number__in=numbers).defer("preview", "spec")
    }
    rows = [(experiment, last.get(experiment.last_number)) for experiment in found]
    return render(
        request, "jobs/experiments.html", {"rows": rows, "may_act": request.principal.may(Role.CONTRIBUTOR)}
    )


@needs(Role.VIEWER)
def environments(request: WorkspaceRequest) -> HttpResponse:
    """The curated ones, and the interpreters that each node reports."""
    now = timezone.now()
    span = listening_window(now)
    nodes = [
        (node, str(status(node, now, span)))
        for node in visible_nodes(request.principal.workspace).filter(revoked_at=None)
    ]
    return render(request, "jobs/environments.html", {"curated": CURATED, "nodes": nodes})
