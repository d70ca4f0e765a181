"""Pages of operators for the workspaces of this installation."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from workspaces.access import WorkspaceRequest, operators_only
from workspaces.administration import workspace_changes
from workspaces.administration.errors import AdministrationError
from workspaces.administration.forms import RenameForm, WorkspaceForm
from workspaces.authentication.confirmation import requires_password
from workspaces.models import Membership, Workspace
from workspaces.states import Role


@require_GET
@operators_only
def workspaces(request: WorkspaceRequest) -> HttpResponse:
    return _workspaces(request)


@require_POST
@operators_only
@requires_password
def create(request: WorkspaceRequest) -> HttpResponse:
    form = WorkspaceForm(request.POST, label_suffix="")
    if form.is_valid():
        user, fields = request.principal.user, form.cleaned_data
        try:
            made = workspace_changes.create(
                user, fields["name"], fields["slug"], owner=fields["owner"] or user
            )
        except AdministrationError as error:
            form.add_error(error.field, _sentence(error))
        else:
            messages.success(
                request, f"{made} is there. Choose it in the menu at the upper right to work in it."
            )
            return redirect("workspaces")
    return _workspaces(request, form)


@require_POST
@operators_only
@requires_password
def rename(request: WorkspaceRequest, pk: int) -> HttpResponse:
    workspace, form = _workspace(pk), RenameForm(request.POST)
    try:
        workspace_changes.rename(request.principal.user, workspace, str(form.data.get("name", "")))
    except AdministrationError as error:
        messages.error(request, f"The name {error.message}.")
    else:
        messages.success(request, f"{workspace.slug} is renamed.")
    return redirect("workspaces")


@require_POST
@operators_only
@requires_password
def archive(request: WorkspaceRequest, pk: int) -> HttpResponse:
    workspace = _workspace(pk)
    try:
        workspace_changes.archive(request.principal.user, workspace)
    except AdministrationError as error:
        messages.error(request, f"{workspace} was not archived: {error.message}.")
    else:
        messages.success(request, f"{workspace} is archived: its members can read it and change nothing.")
    return redirect("workspaces")


@require_POST
@operators_only
@requires_password
def restore(request: WorkspaceRequest, pk: int) -> HttpResponse:
    workspace = _workspace(pk)
    workspace_changes.restore(request.principal.user, workspace)
    messages.success(request, f"{workspace} can be worked in again.")
    return redirect("workspaces")


@require_POST
@operators_only
@requires_password
def join(request: WorkspaceRequest, pk: int) -> HttpResponse:
    workspace = _workspace(pk)
    workspace_changes.join_as_owner(request.principal.user, workspace)
    messages.success(request, f"You are an owner of {workspace} now; its members see you in their list.")
    return redirect("workspaces")


def _sentence(error: AdministrationError) -> str:
    return f"{error.message[:1].upper()}{error.message[1:]}."


def _workspace(pk: int) -> Workspace:
    return get_object_or_404(Workspace, pk=pk)


def _workspaces(request: WorkspaceRequest, form: WorkspaceForm | None = None) -> HttpResponse:
    rows = Workspace.objects.annotate(
        member_count=Count("memberships"),
        owner_count=Count(
            "memberships", Q(memberships__role=Role.OWNER.value, memberships__user__is_active=True)
        ),
    ).order_by("archived_at", "name")
    owned = Membership.objects.filter(user=request.user, role=Role.OWNER)
    context = {
        "rows": rows,
        "owned": set(owned.values_list("workspace_id", flat=True)),
        "form": form or WorkspaceForm(label_suffix=""),
    }
    return render(request, "workspaces/workspaces.html", context, status=400 if form else 200)
