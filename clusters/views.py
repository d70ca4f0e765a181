from __future__ import annotations

import threading
from collections.abc import Sequence

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from clusters.agent_upgrades.rollout_reports import last_part
from clusters.charts import GPU, HOST, chart_config
from clusters.enrolment.join import invite
from clusters.enrolment.join_instructions import instructions, reaches_only_this_machine
from clusters.enrolment.node_tokens import EnrolmentError, revoke_node
from clusters.enrolment.node_wheel import node_wheel
from clusters.forms import InvitationForm
from clusters.gpus.gpu_models import count_models
from clusters.gpus.gpu_process_list import process_lines
from clusters.kinds import SLURM
from clusters.models import JoinToken, Node
from clusters.node_reports.notices import agent_version, has_other_agent
from clusters.overview import ClusterCard, cluster_card, cluster_cards, node_cards
from clusters.slurm_partitions.partition_page import show_partition
from clusters.visibility import clusters_of, visible_nodes
from trainhub_launch.metrics import GPU_KEYS
from workspaces.access import WorkspaceRequest, must_operate, needs
from workspaces.authentication.confirmation import requires_password
from workspaces.http.secret_pages import never_store
from workspaces.states import Role

HEAT_METRICS = [
    GPU_KEYS[key]
    for key in ("utilization_pct", "memory_used_bytes", "power_w", "temperature_c", "sm_active_pct")
]
# Of a cluster, on one page, and from how many on they can be searched.
NODES_AT_ONCE, FEW_NODES = 50, 10


@needs(Role.VIEWER)
def clusters(request: WorkspaceRequest) -> HttpResponse:
    page = "clusters/_clusters.html" if request.headers.get("HX-Request") else "clusters/clusters.html"
    cards = cluster_cards(request.principal.workspace)
    has_gpus = any(node.gpus for card in cards for node in card.nodes)
    context = {"cards": cards, "has_gpus": has_gpus, **_outdated_agents(request, cards)}
    return render(request, page, context)


def _outdated_agents(request: WorkspaceRequest, cards: Sequence[ClusterCard]) -> dict[str, object]:
    """Returns for operators which nodes that report run another version of the agent; nothing for others."""
    if not request.principal.user.is_operator:
        return {}
    ready = (item.node for card in cards for item in card.ready)
    return {
        "outdated_nodes": [item.name for item in ready if has_other_agent(item)],
        "agent_version": agent_version(),
    }


@needs(Role.VIEWER)
def cluster(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Shows a cluster; 404 if the workspace may not use it."""
    workspace = request.principal.workspace
    card = cluster_card(get_object_or_404(clusters_of(workspace), name=name), workspace)
    if card.cluster.kind == SLURM:
        return show_partition(request, card)
    page = "clusters/_cluster.html" if request.headers.get("HX-Request") else "clusters/cluster.html"
    context = {
        "card": card,
        "stock": count_models(node.node for node in card.nodes),
        "metrics": HEAT_METRICS,
        "added_at": min((node.node.created_at for node in card.nodes), default=None),
    }
    return render(request, page, {**context, **_listed_nodes(request, card)})


def _listed_nodes(request: WorkspaceRequest, card: ClusterCard) -> dict[str, object]:
    """Returns the page of nodes that was asked for, and by which name and need it was."""
    search, only_troubled = request.GET.get("q", "").strip(), "troubled" in request.GET
    matches = [
        node
        for node in card.nodes
        if search.lower() in node.node.name.lower() and (node.needs_attention or not only_troubled)
    ]
    return {
        "page": Paginator(matches, NODES_AT_ONCE).get_page(request.GET.get("page")),
        "search": search,
        "only_troubled": only_troubled,
        "has_node_filters": len(card.nodes) > FEW_NODES,
    }


@needs(Role.VIEWER)
def node(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Shows a node; 404 if the workspace may not use its cluster."""
    workspace = request.principal.workspace
    cards = node_cards(visible_nodes(workspace).filter(name=name), workspace)
    if not cards:
        raise Http404
    card = cards[0]
    context = {"card": card, "processes": process_lines(card, workspace), "upgrade": last_part(card.node)}
    if request.headers.get("HX-Request"):
        return render(request, "clusters/_node.html", {**context, "is_refresh": True})
    gpus = [cell.gpu for cell in card.gpus]
    charts = chart_config(gpus, nodes={name: card.node.memory_bytes}, scopes=(GPU, HOST) if gpus else (HOST,))
    return render(
        request,
        "clusters/node.html",
        {**context, "charts": charts, "series": f"/api/v1/nodes/{name}/series/"},
    )


@needs(Role.VIEWER)
@requires_password
def add_machine(request: WorkspaceRequest) -> HttpResponse:
    """Shows the form, and after it the command for the new machine with a token that is shown only once."""
    must_operate(request.user)
    form = InvitationForm(request.POST or None, label_suffix="")
    context = {"form": form, "only_here": reaches_only_this_machine()}
    if form.is_valid():
        try:
            values = form.cleaned_data
            invitation, text = invite(
                values["cluster"], values["name"], request.user, monitor_only=values["monitor_only"]
            )
        except EnrolmentError as error:
            form.add_error(error.field, error.message)
        else:
            response = render(
                request,
                "clusters/invited.html",
                {**context, "invitation": invitation, "instructions": instructions(text)},
            )
            never_store(response)
            return response
    else:
        # The command contains the hash of the package, which is built while the form is filled in.
        threading.Thread(target=node_wheel, name="wheel", daemon=True).start()
    return render(request, "clusters/add.html", context, status=400 if form.is_bound else 200)


@needs(Role.VIEWER)
def invitation(request: WorkspaceRequest, pk: int) -> HttpResponse:
    """Renders whether the machine has joined; the page with the command polls this."""
    must_operate(request.user)
    token = get_object_or_404(JoinToken.objects.select_related("node"), pk=pk)
    cards = node_cards([token.node], request.principal.workspace) if token.node else ()
    return render(
        request, "clusters/_invitation.html", {"invitation": token, "card": cards[0] if cards else None}
    )


@needs(Role.VIEWER)
@require_POST
@requires_password
def node_revoke(request: WorkspaceRequest, name: str) -> HttpResponse:
    must_operate(request.user)
    revoked = get_object_or_404(Node.objects.select_related("cluster"), name=name, revoked_at=None)
    revoke_node(revoked, request.user)
    messages.success(request, f"{revoked.name} is revoked: the hub rejects its reports from now on.")
    return redirect("node", revoked.name)
