"""The list of runs."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse

from jobs import causes
from jobs.models import Experiment, Run
from jobs.views.filters import GROUPS, RunFilter
from jobs.views.partials import render_part, wants_part
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

ON_A_PAGE = 50
MOST_EXPERIMENTS = 500


@needs(Role.VIEWER)
def runs(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.principal.workspace
    chosen = RunFilter.read(request.GET)
    found = causes.with_lines(Run.objects.of(workspace).listed()).select_related("experiment", "created_by").defer("preview")
    page = Paginator(chosen.apply(found, request.principal.user), ON_A_PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "chosen": chosen, "may_act": request.principal.may(Role.CONTRIBUTOR)}
    if not wants_part(request):
        context |= {
            "groups": [(name, word) for name, (word, _) in GROUPS.items()],
            "experiments": _experiments(workspace.pk),
        }
    return render_part(request, "jobs/runs.html", "jobs/_run_table.html", context)


def _experiments(workspace_id: int) -> list[str]:
    found = Experiment.objects.filter(workspace_id=workspace_id, deleted_at=None).order_by("name")
    return list(found.values_list("name", flat=True)[:MOST_EXPERIMENTS])
