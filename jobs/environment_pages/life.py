"""Marks a version as outdated, and deletes an environment, from their pages."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from environments import lifecycle
from jobs.sources.environment_deletion import delete_unused
from jobs.sources.own_environments import find_environment, find_version
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@require_POST
@needs(Role.CONTRIBUTOR)
def outdated(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    """Marks the version as outdated for the posted `reason`, or takes that back with `is_current`."""
    version = find_version(request.principal.workspace, name, number)
    if version is None:
        raise Http404(f"There is no version {number} of an environment {name!r} in this workspace.")
    try:
        if request.POST.get("is_current"):
            lifecycle.unmark_outdated(request.principal, version)
        else:
            reason, successor = request.POST.get("reason", ""), request.POST.get("successor", "")
            lifecycle.mark_outdated(request.principal, version, reason, successor)
    except SpecError as error:
        messages.error(request, f"It was not marked: {error.field} {error.message}.")
    return redirect("environment-version", name, number)


@require_POST
@needs(Role.CONTRIBUTOR)
def delete(request: WorkspaceRequest, name: str) -> HttpResponse:
    environment = find_environment(request.principal.workspace, name)
    if environment is None or environment.deleted_at is not None:
        raise Http404(f"There is no environment {name!r} of this workspace.")
    try:
        delete_unused(request.principal, environment)
    except SpecError as error:
        messages.error(request, f"It was not deleted: {error.message}.")
        return redirect("environment", name)
    messages.success(request, f"The environment {name} is deleted.")
    return redirect("environments")
