"""The pages below /docs/."""

from __future__ import annotations

from django.conf import settings
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from trainhub.documentation.library import IMAGES, contents, documents
from trainhub.documentation.rendering import render as render_document
from trainhub.documentation.search import find
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

MAX_QUERY = 200
CHANGELOG = "changelog"


@require_safe
@needs(Role.VIEWER)
def index(request: WorkspaceRequest) -> HttpResponse:
    """Shows the list of documents, or what a search found."""
    query = request.GET.get("q", "").strip()[:MAX_QUERY]
    context = {"groups": contents(), "query": query, "hits": find(query)}
    return render(request, "documentation/index.html", context)


@require_safe
@needs(Role.VIEWER)
def document(request: WorkspaceRequest, slug: str) -> HttpResponse:
    chosen = documents().get(slug)
    if chosen is None:
        raise Http404(f"there is no document {slug!r}")
    version = settings.TRAINHUB_VERSION if slug == CHANGELOG else ""
    context = {"document": chosen, "page": render_document(slug), "groups": contents(), "version": version}
    return render(request, "documentation/document.html", context)


@require_safe
@needs(Role.VIEWER)
def image(_: WorkspaceRequest, name: str) -> HttpResponseBase:
    """Serves a picture of a document. `name` is compared with the names that exist, never joined to a
    path."""
    path = next((path for path in IMAGES.glob("*.*") if path.name == name), None)
    if path is None:
        raise Http404(f"there is no picture {name!r}")
    return FileResponse(path.open("rb"))
