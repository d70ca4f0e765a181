"""The tokens for a slurmrestd on the pages: a person's own on the page of the cluster, the observer's among
its settings."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from clusters.allocations import slurm_tokens
from clusters.kinds import SLURM
from clusters.models import Cluster, SlurmToken
from clusters.overview import cluster_card
from clusters.provisioning.partition_views import show_refused_token
from clusters.slurm_partitions.forms import SlurmTokenForm
from clusters.slurm_partitions.partition_page import show_partition
from clusters.visibility import clusters_of
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs, operators_only
from workspaces.authentication.confirmation import requires_password
from workspaces.states import Role


@needs(Role.CONTRIBUTOR)
@require_POST
@requires_password
def set_own_token(request: WorkspaceRequest, name: str) -> HttpResponse:
    cluster = _own_cluster(request, name)
    form = SlurmTokenForm(request.POST)
    if form.is_valid():
        try:
            token = slurm_tokens.store_person_token(cluster, request.user, form.cleaned_data["token"])
        except SpecError as error:
            form.add_error("token", error.message)
        else:
            _confirm(request, f"Runs of yours can be submitted as {token.account}", token)
            return redirect("cluster", cluster.name)
    return show_partition(request, cluster_card(cluster, request.principal.workspace), form)


@needs(Role.CONTRIBUTOR)
@require_POST
@requires_password
def remove_own_token(request: WorkspaceRequest, name: str) -> HttpResponse:
    cluster = _own_cluster(request, name)
    if slurm_tokens.remove_token(cluster, request.user, request.user):
        messages.success(request, "The hub has no token of yours for this Slurm any more. Your jobs go on.")
    return redirect("cluster", cluster.name)


@operators_only
@require_POST
@requires_password
def set_observer_token(request: WorkspaceRequest, name: str) -> HttpResponse:
    cluster = _partition(name)
    form = SlurmTokenForm(request.POST)
    if form.is_valid():
        try:
            token = slurm_tokens.store_observer_token(cluster, form.cleaned_data["token"], request.user)
        except SpecError as error:
            form.add_error("token", error.message)
        else:
            _confirm(request, f"The hub looks at Slurm as {token.account}", token)
            return redirect("cluster-edit", cluster.name)
    return show_refused_token(request, cluster, form)


@operators_only
@require_POST
@requires_password
def remove_observer_token(request: WorkspaceRequest, name: str) -> HttpResponse:
    cluster = _partition(name)
    if slurm_tokens.remove_token(cluster, None, request.user):
        messages.success(request, "The hub cannot look at this Slurm any more. Jobs go on.")
    return redirect("cluster-edit", cluster.name)


def _confirm(request: WorkspaceRequest, what: str, token: SlurmToken) -> None:
    messages.success(request, f"{what} until {token.expires_at:%Y-%m-%d %H:%M} UTC.")


def _own_cluster(request: WorkspaceRequest, name: str) -> Cluster:
    return get_object_or_404(clusters_of(request.principal.workspace), name=name, kind=SLURM)


def _partition(name: str) -> Cluster:
    return get_object_or_404(Cluster, name=name, kind=SLURM, deleted_at=None)
