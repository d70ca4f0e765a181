"""The part of an environment's page about nodes, and the pages of builds."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from environments.models import EnvironmentVersion
from jobs.builds.build_requests import cancel_build, find_build, may_cancel
from jobs.builds.build_targets import BuildTarget, find_build_target
from jobs.builds.models import BUILD_ATTEMPT
from jobs.builds.node_choices import nodes_context
from jobs.builds.node_environments import node_environments
from jobs.builds.states import BuildPurpose
from jobs.errors import Conflict
from jobs.logs import log_store
from jobs.models import EnvironmentBuild
from jobs.version_builds.making_requests import NotLockedYet, request_target
from jobs.views.partials import render_part
from trainhub_launch.errors import SpecError
from trainhub_launch.log_names import ENVIRONMENT_LOG
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

# Bytes at the end of the log that the page shows.
TAIL_BYTES = 64 * 1024


@require_safe
@needs(Role.VIEWER)
def node_table(request: WorkspaceRequest, name: str, version: str) -> HttpResponse:
    """The table of nodes alone, which the page fetches again while one of them builds."""
    target = _target(request, name, version)
    own_id = target.own.pk if target.own else None
    items = node_environments(request.principal.workspace, name, version, own_id)
    return render(request, "environments/_node_table.html", nodes_context(target, items))


@require_POST
@needs(Role.CONTRIBUTOR)
def order_builds(request: WorkspaceRequest, name: str, version: str) -> HttpResponse:
    """Orders the version on the posted nodes."""
    target = _target(request, name, version)
    try:
        request_target(request.principal, target, request.POST.getlist("nodes"))
    except NotLockedYet as error:
        messages.info(request, f"{error.message[:1].upper()}{error.message[1:]}.")
    except SpecError as error:
        messages.error(request, f"Nothing was ordered: {error.message}.")
    return redirect(f"{_address(target)}#en-nodes")


@require_POST
@needs(Role.CONTRIBUTOR)
def build_again(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    """Orders a version that a node could not make on another one, or on the same."""
    target = _target(request, name, str(number))
    try:
        if target.purpose is BuildPurpose.MAKE:
            request_target(request.principal, target)
    except SpecError as error:
        messages.error(request, f"Nothing was ordered: {error.message}.")
    return redirect(_address(target))


@require_safe
@needs(Role.VIEWER)
def show_build(request: WorkspaceRequest, name: str, build: str) -> HttpResponse:
    """A build: its state and the end of its log."""
    row = _build(request, name, build)
    size = log_store.size(row.pk, BUILD_ATTEMPT, ENVIRONMENT_LOG)
    begin = max(0, size - TAIL_BYTES)
    tail = log_store.read(row.pk, BUILD_ATTEMPT, ENVIRONMENT_LOG, begin, TAIL_BYTES)
    context = {
        "build": row,
        "log": tail.decode(errors="replace"),
        "is_cut": begin > 0,
        "log_url": f"/api/v1/builds/{row.pk}/log?download=1" if size else "",
        "version_url": _version_url(row.name, row.version, is_own=_is_own(row.own_version)),
        "may_cancel": may_cancel(request.principal, row),
    }
    return render_part(request, "environments/build.html", "environments/_build.html", context)


@require_POST
@needs(Role.CONTRIBUTOR)
def cancel_ordered(request: WorkspaceRequest, name: str, build: str) -> HttpResponse:
    row = _build(request, name, build)
    try:
        cancel_build(request.principal, row.pk)
    except Conflict as error:
        messages.info(request, str(error))
    return redirect("environment-build", name, row.pk)


def _build(request: WorkspaceRequest, name: str, build_id: str) -> EnvironmentBuild:
    row = find_build(request.principal.workspace, build_id)
    if row is None or row.name != name:
        raise Http404("There is no such build in this workspace.")
    return row


def _target(request: WorkspaceRequest, name: str, version: str) -> BuildTarget:
    try:
        target = find_build_target(request.principal.workspace, name, version)
    except SpecError as error:
        raise Http404(f"{error.message}.") from error
    if target is None:
        raise Http404(f"There is no version {version!r} of an environment {name!r}.")
    return target


def _address(target: BuildTarget) -> str:
    return _version_url(target.name, target.version, is_own=_is_own(target.own))


def _is_own(version: EnvironmentVersion | None) -> bool:
    return version is not None and version.environment.workspace_id is not None


def _version_url(name: str, version: str, *, is_own: bool) -> str:
    return (
        reverse("environment-version", args=[name, int(version)])
        if is_own
        else reverse("environment", args=[name])
    )
