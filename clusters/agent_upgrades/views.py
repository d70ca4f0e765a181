"""The page of the agents of a cluster, and the orders to upgrade them."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from clusters.agent_upgrades.rollout_reports import cluster_agents
from clusters.agent_upgrades.rollouts import (
    MAX_AT_ONCE,
    UpgradeRefused,
    cancel_rollout,
    order_for_cluster,
    order_for_node,
)
from clusters.models import AgentRollout, Cluster, Node
from workspaces.access import WorkspaceRequest, operators_only
from workspaces.authentication.confirmation import requires_password


class RolloutForm(forms.Form):
    at_once = forms.IntegerField(
        label="Nodes at a time",
        min_value=1,
        max_value=MAX_AT_ONCE,
        initial=1,
        help_text="The first node that fails ends the order.",
    )


@operators_only
@requires_password
def cluster_agents_page(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Shows which version each node of the cluster runs, and orders all that can to run the hub's."""
    cluster = get_object_or_404(Cluster, name=name, deleted_at=None)
    form = RolloutForm(request.POST if request.method == "POST" else None, label_suffix="")
    if form.is_valid():
        try:
            order_for_cluster(cluster, request.user, at_once=form.cleaned_data["at_once"])
        except UpgradeRefused as refusal:
            messages.error(request, str(refusal))
        else:
            messages.success(request, "The upgrade was ordered; active runs continue.")
        return redirect("cluster-agents", cluster.name)
    is_refresh = bool(request.headers.get("HX-Request"))
    page = "clusters/_agents.html" if is_refresh else "clusters/agents.html"
    context = {"cluster": cluster, "form": form, "report": cluster_agents(cluster)}
    return render(request, page, context, status=400 if form.is_bound else 200)


@operators_only
@require_POST
@requires_password
def cancel_upgrade(request: WorkspaceRequest, name: str) -> HttpResponse:
    rollout = AgentRollout.objects.filter(cluster__name=name).order_by("-pk").first()
    try:
        if rollout is not None:
            cancel_rollout(rollout, request.user)
            messages.success(request, "Canceled. Nodes that have begun end what they do.")
    except UpgradeRefused as refusal:
        messages.error(request, str(refusal))
    return redirect("cluster-agents", name)


@operators_only
@require_POST
@requires_password
def upgrade_node(request: WorkspaceRequest, name: str) -> HttpResponse:
    node = get_object_or_404(Node, name=name, removed_at=None)
    try:
        order_for_node(node, request.user, may_go_back="may_go_back" in request.POST)
    except UpgradeRefused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"The upgrade of {name} was ordered; its runs continue.")
    return redirect("node", name)
