"""The page of quotas: members see those of their workspace, operators see and set those of any."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from jobs.quotas import disk_use, quota_admin
from jobs.quotas.quota_check import PEOPLE, PERSON, WORKSPACE
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, must_operate, needs
from workspaces.models import Workspace
from workspaces.states import Role

SCOPE_WORDS = [(WORKSPACE, "the whole workspace"), (PEOPLE, "each person"), (PERSON, "one person")]


class QuotaForm(forms.Form):
    scope = forms.ChoiceField(choices=SCOPE_WORDS, label="For")
    person = forms.CharField(
        required=False,
        max_length=150,
        label="Person",
        help_text="The user name, for a quota of one person. It goes before the one for each person.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    gpus = forms.IntegerField(required=False, label="GPUs at once", help_text="Empty: no limit.")
    gpu_hours = forms.FloatField(
        required=False, label="GPU-hours a month", help_text="In a calendar month (UTC). Empty: no limit."
    )
    waiting_runs = forms.IntegerField(required=False, label="Waiting runs", help_text="Empty: no limit.")
    disk_gib = forms.FloatField(
        required=False,
        label="Disk in GiB",
        help_text="Of sources, outputs, logs and models that the hub stores. Empty: no limit.",
    )


@needs(Role.VIEWER)
def quotas(request: WorkspaceRequest) -> HttpResponse:
    workspace = _workspace(request)
    form = QuotaForm(request.POST if request.method == "POST" else None, label_suffix="")
    if form.is_bound:
        must_operate(request.user)
    if form.is_valid():
        values = form.cleaned_data
        try:
            row = quota_admin.set_quota(
                workspace, values["scope"], values["person"].strip(), _limits(values), request.user
            )
        except SpecError as error:
            form.add_error(error.field, error.message)
        else:
            messages.success(request, "The quota was removed." if row is None else "The quota was set.")
            if row is not None and row.note:
                messages.warning(request, row.note)
            return redirect(request.get_full_path())
    only = None if request.user.is_operator or request.principal.may(Role.OWNER) else request.user
    context: dict[str, Any] = {
        "workspace": workspace,
        "rows": quota_admin.quota_rows(workspace, only),
        "form": form,
        "measure_minutes": int(disk_use.MEASURE_INTERVAL_S // 60),
        "workspaces": Workspace.objects.order_by("slug") if request.user.is_operator else (),
    }
    return render(request, "jobs/quotas/quotas.html", context, status=400 if form.is_bound else 200)


def _limits(values: dict[str, Any]) -> dict[str, float | None]:
    return {name: values[name] for name in quota_admin.LIMITS}


def _workspace(request: WorkspaceRequest) -> Workspace:
    slug = request.GET.get("workspace", "").replace("\x00", "")
    if not slug or slug == request.principal.workspace.slug:
        return request.principal.workspace
    if not request.user.is_operator:
        raise PermissionDenied("Only operators see the quotas of other workspaces.")
    return get_object_or_404(Workspace, slug=slug)
