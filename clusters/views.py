from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render

from clusters.overview import cluster_cards, node_cards
from clusters.visibility import visible_nodes
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@needs(Role.VIEWER)
def clusters(request: WorkspaceRequest) -> HttpResponse:
    page = "clusters/_clusters.html" if request.headers.get("HX-Request") else "clusters/clusters.html"
    cards = cluster_cards(request.principal.workspace)
    has_gpus = any(node.gpus for card in cards for node in card.nodes)
    return render(request, page, {"cards": cards, "has_gpus": has_gpus})


@needs(Role.VIEWER)
def node(request: WorkspaceRequest, name: str) -> HttpResponse:
    """A node of a cluster that the workspace may not use is not there."""
    workspace = request.principal.workspace
    cards = node_cards(visible_nodes(workspace).filter(name=name), workspace)
    if not cards:
        raise Http404
    page = "clusters/_node.html" if request.headers.get("HX-Request") else "clusters/node.html"
    return render(request, page, {"card": cards[0]})
