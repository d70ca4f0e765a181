"""The search field at the top of every page: finds runs, nodes and pages by name."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import reverse

from clusters.visibility import visible_nodes
from jobs.display.navigation import navigation_entries
from jobs.models import Run
from jobs.views.partials import render_part
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

MAX_OF_A_KIND = 6


@dataclass(frozen=True)
class Hit:
    icon: str
    title: str
    detail: str
    url: str


@needs(Role.VIEWER)
def search(request: WorkspaceRequest) -> HttpResponse:
    # PostgreSQL does not accept NUL characters in a query.
    text = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    hits: list[Hit] = []
    if text:
        workspace = request.principal.workspace
        hits = [*_runs(text, workspace), *_nodes(text, workspace), *_pages(text, request)]
    return render_part(request, "jobs/search.html", "jobs/_search_hits.html", {"text": text, "hits": hits})


def _runs(text: str, workspace: Workspace) -> list[Hit]:
    runs = (
        Run.objects.for_workspace(workspace)
        .matching(text=text)
        .select_related("experiment")
        .defer("preview")[:MAX_OF_A_KIND]
    )
    return [
        Hit(
            "queue-list",
            run.display_name or str(run),
            f"run {run.number} · {run.experiment.name} · {run.state}",
            reverse("run", args=[run.number]),
        )
        for run in runs
    ]


def _nodes(text: str, workspace: Workspace) -> list[Hit]:
    nodes = visible_nodes(workspace).filter(name__icontains=text)[:MAX_OF_A_KIND]
    return [
        Hit("server-stack", node.name, f"node of {node.cluster.name}", reverse("node", args=[node.name]))
        for node in nodes
    ]


def _pages(text: str, request: WorkspaceRequest) -> list[Hit]:
    return [
        Hit(entry.icon, entry.word, "page", entry.url)
        for entry in navigation_entries(request)
        if text.lower() in entry.word.lower()
    ]
