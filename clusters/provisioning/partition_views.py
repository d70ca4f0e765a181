"""The settings page of a cluster that is a partition of a Slurm: its fields, its test, its Unix accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from clusters.allocations import partitions
from clusters.allocations.login_keys import KeyUnavailable
from clusters.backends.slurm import login_wrapper
from clusters.backends.slurm.examination import SlurmCheck
from clusters.kinds import SLURM
from clusters.models import Cluster
from clusters.provisioning import cluster_admin
from clusters.provisioning.forms import CommonForm
from clusters.slurm_partitions import account_table, login_node
from clusters.slurm_partitions.cluster_examination import examine_cluster
from clusters.slurm_partitions.forms import PartitionForm, SlurmTokenForm, UnixAccountForm
from clusters.slurm_partitions.partition_settings import PartitionRefused
from clusters.slurm_partitions.token_access import observer_access
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, operators_only
from workspaces.authentication.confirmation import requires_password


@dataclass(frozen=True)
class _Forms:
    """What the page shows; a form is bound if it was sent and refused."""

    common: CommonForm
    partition: PartitionForm
    account: UnixAccountForm
    observer: SlurmTokenForm | None = None

    @property
    def is_refused(self) -> bool:
        return self.observer is not None or any(form.is_bound for form in (self.common, self.account))


def add_errors(form: forms.Form, partition: PartitionForm, error: SpecError) -> None:
    """Shows the error beside its field, in whichever of the forms has it."""
    if isinstance(error, PartitionRefused):
        partition.add_problems(error)
    else:
        form.add_error(error.field if error.field in form.fields else None, error.message)


def edit_partition(request: WorkspaceRequest, cluster: Cluster) -> HttpResponse:
    """Shows and changes the settings; the caller has checked who asks."""
    row = partitions.partition_of(cluster)
    common = CommonForm(request.POST or None, cluster=cluster)
    partition = PartitionForm(request.POST or None, row=row)
    if common.is_valid() & partition.is_valid():
        values = {**common.values, "slurm": partition.values}
        try:
            changed = cluster_admin.change(cluster, values, request.user)
        except SpecError as error:
            add_errors(common, partition, error)
        else:
            messages.success(request, f"{cluster.name} was changed." if changed else "Nothing was changed.")
            return redirect("cluster-edit", cluster.name)
    return _page(request, cluster, _Forms(common, partition, UnixAccountForm()))


@operators_only
@require_POST
def test_partition(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Tests the stored settings, and shows the checks."""
    cluster = _cluster(name)
    checks = examine_cluster(cluster)
    if request.headers.get("HX-Request"):
        return render(request, "clusters/slurm/_checks.html", {"checks": checks})
    return _page(request, cluster, _unbound(cluster), checks)


@operators_only
@require_POST
@requires_password
def set_unix_account(request: WorkspaceRequest, name: str) -> HttpResponse:
    cluster, form = _cluster(name), UnixAccountForm(request.POST)
    if form.is_valid():
        try:
            row = account_table.set_unix_account(
                cluster, form.cleaned_data["person"], form.cleaned_data["account"], request.user
            )
        except SpecError as error:
            form.add_error(error.field, error.message)
        else:
            messages.success(request, f"Runs of {row.person} are jobs of {row.name} from now on.")
            return redirect("cluster-edit", cluster.name)
    return _page(request, cluster, replace(_unbound(cluster), account=form))


@operators_only
@require_POST
@requires_password
def remove_unix_account(request: WorkspaceRequest, name: str) -> HttpResponse:
    cluster = _cluster(name)
    person = request.POST.get("person", "")
    try:
        account_table.remove_unix_account(cluster, person, request.user)
    except SpecError as error:
        messages.error(request, f"{error.field}: {error.message}")
    else:
        messages.success(request, f"{person} has no account in {cluster.name} any more.")
    return redirect("cluster-edit", cluster.name)


@operators_only
@require_GET
def download_login_wrapper(_request: WorkspaceRequest, name: str) -> HttpResponse:
    """Returns the file that goes to the login node; it is the same for all clusters."""
    _cluster(name)
    response = HttpResponse(login_node.wrapper_text(), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{login_wrapper.NAME}"'
    return response


@operators_only
@require_POST
@requires_password
def rotate_login_key(request: WorkspaceRequest, name: str) -> HttpResponse:
    cluster = _cluster(name)
    try:
        login_node.rotate_key(cluster, request.user)
    except KeyUnavailable as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "The hub has a new key. Enter its line on the login node.")
    return redirect("cluster-edit", cluster.name)


def show_refused_token(request: WorkspaceRequest, cluster: Cluster, form: SlurmTokenForm) -> HttpResponse:
    """Shows the settings with what is wrong about the observer's token beside its field."""
    return _page(request, cluster, replace(_unbound(cluster), observer=form))


def _unbound(cluster: Cluster) -> _Forms:
    row = partitions.partition_of(cluster)
    return _Forms(CommonForm(cluster=cluster), PartitionForm(row=row), UnixAccountForm())


def _page(
    request: WorkspaceRequest, cluster: Cluster, page_forms: _Forms, checks: Sequence[SlurmCheck] = ()
) -> HttpResponse:
    context = {
        "cluster": cluster,
        "form": page_forms.common,
        "partition": page_forms.partition,
        "account_form": page_forms.account,
        "accounts": account_table.account_rows(cluster),
        "checks": checks,
        "login": login_node.login_node_of(cluster),
        "wrapper_name": login_wrapper.NAME,
        "observer": observer_access(cluster, page_forms.observer),
    }
    return render(
        request, "clusters/slurm/settings.html", context, status=400 if page_forms.is_refused else 200
    )


def _cluster(name: str) -> Cluster:
    return get_object_or_404(Cluster, name=name, kind=SLURM, deleted_at=None)
