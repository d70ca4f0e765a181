from __future__ import annotations

import time
from urllib.parse import quote

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from clusters.charts import GPU, chart_config
from clusters.gpus.gpu_health import health, link
from clusters.gpus.gpu_history import GpuHistory, history
from clusters.gpus.gpu_process_list import process_lines
from clusters.models import Gpu, NodeEvent
from clusters.overview import node_cards
from clusters.ranges import read_time_range
from clusters.visibility import visible_nodes
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

MAX_EVENTS = 50


@needs(Role.VIEWER)
def gpu(request: WorkspaceRequest, uuid: str) -> HttpResponse:
    """Shows a GPU; 404 if the workspace may not use its cluster."""
    workspace = request.principal.workspace
    device = _visible_gpu(uuid, workspace)
    card = node_cards(visible_nodes(workspace).filter(pk=device.node_id), workspace)[0]
    counters = card.node.vitals.get("counters", {}).get(uuid, {})
    context = {
        "card": card,
        "gpu": device,
        "cell": next((cell for cell in card.gpus if cell.gpu.uuid == uuid), None),
        "health": health(counters),
        "link": link(counters),
        "processes": process_lines(card, workspace, {uuid}),
        "parent": next((cell.gpu for cell in card.gpus if cell.gpu.uuid == device.parent), None),
        "parts": [cell for cell in card.gpus if cell.gpu.parent == uuid],
        "events": NodeEvent.objects.filter(gpu=uuid, node=device.node_id).order_by("-at")[:MAX_EVENTS],
    }
    if request.headers.get("HX-Request"):
        return render(request, "clusters/_gpu_now.html", context)
    charts = {
        "charts": chart_config([device], scopes=(GPU,)),
        "series": f"/api/v1/gpus/{quote(uuid, safe='/')}/series/",
    }
    return render(request, "clusters/gpu.html", {**context, **charts, **_history(request, device)})


@needs(Role.VIEWER)
def gpu_history(request: WorkspaceRequest, uuid: str) -> HttpResponse:
    """Renders the uses of the GPU in the span of the address; the page fetches it when its span changes."""
    return render(
        request,
        "clusters/_gpu_history.html",
        _history(request, _visible_gpu(uuid, request.principal.workspace)),
    )


def _visible_gpu(uuid: str, workspace: Workspace) -> Gpu:
    # 404 for GPUs of other workspaces as well, so that the answer does not reveal which ones exist.
    gpu = Gpu.objects.filter(uuid=uuid, node__in=visible_nodes(workspace)).select_related("node").first()
    if gpu is None:
        raise Http404
    return gpu


def _history(request: WorkspaceRequest, gpu: Gpu) -> dict[str, object]:
    now = time.time()
    gpu_history = history(gpu, read_time_range(request.GET.dict(), now), request.principal.workspace, now)
    return {"gpu": gpu, "history": gpu_history, "bands": _bands(gpu_history, now)}


def _bands(gpu_history: GpuHistory, now: float) -> list[dict[str, object]]:
    return [
        {
            "from": use.start,
            # A use that goes on reaches beyond the end of a live chart, which moves on without a new request.
            "to": now + 3600 if use.end is None else use.end,
            "label": use.line.label,
            "url": reverse("run-by-id", args=[use.line.holder]) if use.line.holder else "",
            "tone": "running" if use.line.holder else "canceled",
        }
        for use in gpu_history.uses
    ]
