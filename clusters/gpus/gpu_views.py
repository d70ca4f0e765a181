from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse

from clusters.charts import GPU, config
from clusters.gpus.gpu_health import health, link
from clusters.gpus.gpu_history import GpuHistory, history
from clusters.gpus.gpu_process_list import process_lines
from clusters.models import Gpu, NodeEvent
from clusters.overview import node_cards
from clusters.ranges import read_span
from clusters.visibility import visible_nodes
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

MOST_EVENTS = 50


@needs(Role.VIEWER)
def gpu(request: WorkspaceRequest, uuid: str) -> HttpResponse:
    """A GPU of a cluster that the workspace may not use is not there."""
    workspace = request.principal.workspace
    found = _found(uuid, workspace)
    card = node_cards(visible_nodes(workspace).filter(pk=found.node_id), workspace)[0]
    counters = card.node.vitals.get("counters", {}).get(uuid, {})
    context = {
        "card": card,
        "gpu": found,
        "cell": next((cell for cell in card.gpus if cell.gpu.uuid == uuid), None),
        "health": health(counters),
        "link": link(counters),
        "processes": process_lines(card, workspace, {uuid}),
        "parent": next((cell.gpu for cell in card.gpus if cell.gpu.uuid == found.parent), None),
        "parts": [cell for cell in card.gpus if cell.gpu.parent == uuid],
        "events": NodeEvent.objects.filter(gpu=uuid, node=found.node_id).order_by("-at")[:MOST_EVENTS],
    }
    if request.headers.get("HX-Request"):
        return render(request, "clusters/_gpu_now.html", context)
    charts = {
        "charts": config([found], scopes=(GPU,)),
        "series": f"/api/v1/gpus/{quote(uuid, safe='/')}/series/",
    }
    return render(request, "clusters/gpu.html", {**context, **charts, **_history(request, found)})


@needs(Role.VIEWER)
def gpu_history(request: WorkspaceRequest, uuid: str) -> HttpResponse:
    """What the GPU was used for in the span of the address; fetched anew whenever the page shows another
    one."""
    return render(
        request, "clusters/_gpu_history.html", _history(request, _found(uuid, request.principal.workspace))
    )


def _found(uuid: str, workspace: Workspace) -> Gpu:
    found = Gpu.objects.filter(uuid=uuid, node__in=visible_nodes(workspace)).select_related("node").first()
    if found is None:
        raise Http404
    return found


def _history(request: WorkspaceRequest, found: Gpu) -> dict[str, Any]:
    now = time.time()
    told = history(found, read_span(request.GET.dict(), now), request.principal.workspace, now)
    return {"gpu": found, "history": told, "bands": _bands(told, now)}


def _bands(told: GpuHistory, now: float) -> list[dict[str, Any]]:
    return [
        {
            "from": use.start,
            "to": now + 3600 if use.end is None else use.end,
            "label": use.line.label,
            "url": _run_url(use.line.holder),
            "tone": "running" if use.line.holder else "canceled",
        }
        for use in told.uses
    ]


def _run_url(holder: str) -> str:
    """Runs are of a higher floor, which may not be there."""
    try:
        return reverse("run-by-id", args=[holder]) if holder else ""
    except NoReverseMatch:
        return ""
