"""The part of a version's page about its files on the hub."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from environments.models import EnvironmentVersion
from jobs.hub_files.fetch_orders import request_fetch
from jobs.hub_files.stored_parts import hub_files_of
from jobs.sources.own_environments import find_version
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@require_safe
@needs(Role.VIEWER)
def show_files(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    """The card alone, which the page fetches again while files come."""
    version = _version(request, name, number)
    context = {"version": version, **files_context(request, version)}
    return render(request, "environments/_hub_files.html", context)


@require_POST
@needs(Role.CONTRIBUTOR)
def order_hub_files(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    """Has the hub fetch what it lacks."""
    try:
        request_fetch(request.principal, _version(request, name, number))
    except SpecError as error:
        messages.error(request, f"Nothing is fetched: {error.message}.")
    return redirect("environment-version", name, number)


def files_context(request: WorkspaceRequest, version: EnvironmentVersion) -> dict[str, object]:
    may_act = request.principal.may(Role.CONTRIBUTOR) and version.environment.deleted_at is None
    return {"hub_files": hub_files_of(version), "may_act": may_act}


def _version(request: WorkspaceRequest, name: str, number: int) -> EnvironmentVersion:
    version = find_version(request.principal.workspace, name, number)
    if version is None:
        raise Http404(f"There is no version {number} of an environment {name!r} in this workspace.")
    return version
