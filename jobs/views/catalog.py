"""The page that lists the workspace's experiments."""

from __future__ import annotations

from django.db.models import Count, Max, Q
from django.http import HttpResponse
from django.shortcuts import render

from jobs.models import Experiment, Run
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
