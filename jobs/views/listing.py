"""The list of runs."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render

from jobs.models import Experiment, Run
from jobs.views.filters import GROUPS, RunFilter
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

ON_A_PAGE = 50


@needs(Role.VIEWER)
def runs(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.principal.workspace
    chosen = RunFilter.read(request.GET)
    found = Run.objects.filter(workspace=workspace).select_related("experiment", "created_by").defer("preview")
    page = Paginator(chosen.apply(found, request.principal.user), ON_A_PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "chosen": chosen, "may_act": request.principal.may(Role.CONTRIBUTOR)}
    if request.headers.get("HX-Request"):
        return render(request, "jobs/_run_table.html", context)
    context |= {
        "groups": [(name, word) for name, (word, _) in GROUPS.items()],
        "experiments": Experiment.objects.filter(workspace=workspace).order_by("name").values_list("name", flat=True)[:500],
    }
    return render(request, "jobs/runs.html", context)
