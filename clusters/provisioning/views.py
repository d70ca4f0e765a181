"""Pages and actions for operators who create, change, drain and remove clusters and nodes."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from clusters.kinds import SLURM
from clusters.models import Cluster, Node
from clusters.provisioning import cluster_admin, node_admin
from clusters.provisioning.cluster_admin import ClusterExists, ClusterInUse
from clusters.provisioning.forms import ClusterForm, NewClusterForm
from clusters.provisioning.node_admin import NodeBusy
from clusters.provisioning.partition_views import add_errors, edit_partition
from clusters.slurm_partitions.forms import PartitionForm
from clusters.visibility import clusters_of
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, may_operate, must_operate, needs
from workspaces.authentication.confirmation import ask_for_password, requires_password
from workspaces.http.return_address import return_address
from workspaces.models import User
from workspaces.states import Role


@needs(Role.VIEWER)
@requires_password
def add_cluster(request: WorkspaceRequest) -> HttpResponse:
    must_operate(request.user)
    form = NewClusterForm(request.POST or None)
    partition = PartitionForm(request.POST if form.is_slurm else None)
    # Both are checked, so that all errors show at once.
    if form.is_valid() & (partition.is_valid() or not form.is_slurm):
        values = {**form.values, **({"slurm": partition.values} if form.is_slurm else {})}
        try:
            cluster = cluster_admin.create(values.pop("name"), values, request.user)
        except ClusterExists as error:
            form.add_error("name", str(error))
        except SpecError as error:
            add_errors(form, partition, error)
        else:
            messages.success(request, f"The cluster {cluster.name} was created.")
            return redirect("cluster-edit", cluster.name)
    context = {"form": form, "partition": partition}
    return render(request, "clusters/add_cluster.html", context, status=400 if form.is_bound else 200)


@needs(Role.VIEWER)
@requires_password
def edit_cluster(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Shows and changes the settings of a cluster, with its machines and its journal."""
    must_operate(request.user)
    cluster = _cluster(name)
    if cluster.kind == SLURM:
        return edit_partition(request, cluster)
    form = ClusterForm(request.POST or None, cluster=cluster)
    if form.is_valid():
        try:
            changed = cluster_admin.change(cluster, form.values, request.user)
        except SpecError as error:
            form.add_error(error.field, error.message)
        else:
            messages.success(request, f"{cluster.name} was changed." if changed else "Nothing was changed.")
            return redirect("cluster-edit", cluster.name)
    return render(
        request,
        "clusters/edit_cluster.html",
        {"cluster": cluster, "form": form},
        status=400 if form.is_bound else 200,
    )


@needs(Role.VIEWER)
def cluster_life(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Renders the part that refreshes itself: the machines of the provider, and the journal."""
    visible = (
        Cluster.objects.filter(deleted_at=None)
        if may_operate(request.user)
        else clusters_of(request.principal.workspace)
    )
    return render(request, "clusters/_cluster_life.html", {"cluster": get_object_or_404(visible, name=name)})


@needs(Role.VIEWER)
@require_POST
def cluster_do(request: WorkspaceRequest, name: str, verb: str) -> HttpResponse:
    must_operate(request.user)
    cluster = _cluster(name)
    if verb in ASKS_FOR_PASSWORD and (page := ask_for_password(request)) is not None:
        return page
    act, message = CLUSTER_VERBS[verb]
    try:
        act(cluster, request.user)
    except ClusterInUse as refusal:
        messages.error(request, str(refusal))
        return redirect("cluster-edit", name)
    messages.success(request, message.format(name))
    return redirect("clusters") if verb == "delete" else redirect("cluster-edit", name)


@needs(Role.VIEWER)
@require_POST
def node_do(request: WorkspaceRequest, name: str, verb: str) -> HttpResponse:
    must_operate(request.user)
    node = get_object_or_404(Node.objects.select_related("cluster"), name=name)
    if verb in ASKS_FOR_PASSWORD and (page := ask_for_password(request)) is not None:
        return page
    act, message = NODE_VERBS[verb]
    try:
        act(node, request.user)
    except NodeBusy as refusal:
        messages.error(request, str(refusal))
        return redirect("node", name)
    messages.success(request, message.format(name))
    is_gone = verb in ("remove", "remove-by-force")
    return redirect(reverse("clusters") if is_gone else return_address(request, reverse("node", args=[name])))


def _cluster(name: str) -> Cluster:
    return get_object_or_404(Cluster, name=name, deleted_at=None)


ASKS_FOR_PASSWORD = ("delete", "remove", "remove-by-force")
CLUSTER_VERBS: dict[str, tuple[Callable[[Cluster, User], None], str]] = {
    "drain": (cluster_admin.drain, "{} is drained: it takes no new runs."),
    "resume": (cluster_admin.resume, "{} takes runs again."),
    "delete": (cluster_admin.delete, "{} is deleted."),
}
NODE_VERBS: dict[str, tuple[Callable[[Node, User], None], str]] = {
    "drain": (node_admin.drain, "{} is drained: it takes no new runs, and active runs continue."),
    "resume": (node_admin.resume, "{} takes runs again."),
    "monitor-only": (
        lambda node, who: node_admin.set_monitor_only(node, True, who),
        "{} is monitored only from now on.",
    ),
    "open": (lambda node, who: node_admin.set_monitor_only(node, False, who), "{} is open to runs."),
    "low-priority": (
        lambda node, who: node_admin.set_low_priority(node, True, who),
        "{} is low-priority: it may disappear.",
    ),
    "lasting": (
        lambda node, who: node_admin.set_low_priority(node, False, who),
        "{} is no longer low-priority.",
    ),
    "remove": (node_admin.remove, "{} is removed. The history of its runs is kept."),
    "remove-by-force": (
        lambda node, who: node_admin.remove(node, who, force=True),
        "{} is removed; its runs end as lost.",
    ),
}
