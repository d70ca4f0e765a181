"""Experiments and environments: what runs are grouped by and run in."""

from __future__ import annotations

from django.db.models import Count, Max, Q
from django.http import HttpResponse
from django.shortcuts import render

from jobs.models import Experiment, Run
from jobs.states import ACTIVE, RunState
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@needs(Role.VIEWER)
def experiments(request: WorkspaceRequest) -> HttpResponse:
    found = list(
        Experiment.objects.filter(workspace=request.principal.workspace)
        .annotate(
            run_count=Count("runs"),
            active_count=Count("runs", filter=Q(runs__state__in=ACTIVE)),
            failed_count=Count("runs", filter=Q(runs__state=RunState.FAILED)),
            last_number=Max("runs__number"),
        )
        .order_by("-last_number", "name")
    )
    last = {
        run.number: run
        for run in Run.objects.filter(workspace=request.principal.workspace, number__in=[item.last_number for item in found if item.last_number])
        .only("number", "display_name", "state", "created_at")
    }
    rows = [(experiment, last.get(experiment.last_number)) for experiment in found]
    return render(request, "jobs/experiments.html", {"rows": rows})
