"""The search field of the frame: runs, nodes and pages."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from clusters.visibility import visible_nodes
from jobs.models import Run
from jobs.templatetags.frame import rail
from jobs.views.filters import text_matches
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

MOST_OF_A_KIND = 6


@dataclass(frozen=True)
class Hit:
    icon: str
    title: str
    detail: str
    url: str


@needs(Role.VIEWER)
def search(request: WorkspaceRequest) -> HttpResponse:
    text = request.GET.get("q", "").strip()[:200]
    hits = [*_runs(text, request.principal.workspace), *_nodes(text, request.principal.workspace), *_pages(text, request)] if text else []
    template = "jobs/_found.html" if request.headers.get("HX-Request") else "jobs/search.html"
    return render(request, template, {"text": text, "hits": hits})


def _runs(text: str, workspace: Workspace) -> list[Hit]:
    found = Run.objects.filter(text_matches(text), workspace=workspace).select_related("experiment")[:MOST_OF_A_KIND]
    return [
        Hit("queue-list", run.display_name or f"run {run.number}", f"run {run.number} · {run.experiment.name} · {run.state}",
            f"/runs/{run.number}/")
        for run in found
    ]


def _nodes(text: str, workspace: Workspace) -> list[Hit]:
    found = visible_nodes(workspace).filter(name__icontains=text)[:MOST_OF_A_KIND]
    return [Hit("server-stack", node.name, f"node of {node.cluster.name}", reverse("node", args=[node.name])) for node in found]


def _pages(text: str, request: WorkspaceRequest) -> list[Hit]:
    return [Hit(entry.icon, entry.word, "page", entry.url) for entry in rail(request) if text.lower() in entry.word.lower()]
