"""The search field at the top of every page, and the command palette."""

from __future__ import annotations

from dataclasses import asdict

from django.http import HttpResponse, JsonResponse
from django.views.decorators.http import require_GET

from jobs.views.partials import render_part
from jobs.views.search_hits import actions, hits_for, pages, without_actions
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

MAX_CHARACTERS = 200


@needs(Role.VIEWER)
def search(request: WorkspaceRequest) -> HttpResponse:
    text = _text(request)
    hits = hits_for(text, request) if text else []
    return render_part(request, "jobs/search.html", "jobs/_search_hits.html", {"text": text, "hits": hits})


@require_GET
@needs(Role.VIEWER)
def palette(request: WorkspaceRequest) -> HttpResponse:
    """Returns what the command palette offers for the text, as JSON; without a text all actions and pages."""
    text = _text(request)
    offered = actions(text, request.principal)
    others = without_actions(hits_for(text, request) if text else pages("", request))
    hits = [*others, *offered] if text else [*offered, *others]
    return JsonResponse({"hits": [asdict(hit) for hit in hits]})


def _text(request: WorkspaceRequest) -> str:
    # PostgreSQL does not accept NUL characters in a query.
    return request.GET.get("q", "").replace("\x00", "").strip()[:MAX_CHARACTERS]
