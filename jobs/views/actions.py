"""Views for a contributor's actions on a run: cancel, clone, delete, archive and unarchive."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from jobs.errors import Conflict
from jobs.scheduling import run_actions
from jobs.views.run_lookup import run_numbered
from jobs.wizard import drafts
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@require_POST
@needs(Role.CONTRIBUTOR)
def cancel(request: WorkspaceRequest, number: int) -> HttpResponse:
    run = run_numbered(request.principal, number)
    try:
        if not run_actions.cancel(run, request.principal.user):
            messages.info(request, f"Run {number} has already ended or is being canceled.")
    except Conflict as error:
        messages.error(request, str(error))
    return redirect("run", number)


@require_POST
@needs(Role.CONTRIBUTOR)
def clone(request: WorkspaceRequest, number: int) -> HttpResponse:
    """Starts a wizard draft with the spec of the run and opens its review step."""
    run = run_numbered(request.principal, number)
    try:
        spec = run_actions.clone_spec(run)
    except Conflict as error:
        messages.error(request, str(error))
        return redirect("run", number)
    draft = drafts.start(request.principal, spec, cloned_from=run)
    return redirect("wizard-step", draft.pk, "review")


@require_POST
@needs(Role.CONTRIBUTOR)
def delete(request: WorkspaceRequest, number: int) -> HttpResponse:
    run = run_numbered(request.principal, number)
    try:
        run_actions.delete(run, request.principal.user)
    except Conflict as error:
        messages.error(request, str(error))
        return redirect("run", number)
    undo = reverse("run-restore", args=[number])
    messages.success(
        request, f"Run {number} is deleted. It is kept for {settings.PURGE_DAYS:g} days.", extra_tags=undo
    )
    return redirect("runs")


@require_POST
@needs(Role.CONTRIBUTOR)
def archive(request: WorkspaceRequest, number: int) -> HttpResponse:
    try:
        run_actions.archive(run_numbered(request.principal, number), request.principal.user)
    except Conflict as error:
        messages.error(request, str(error))
        return redirect("run", number)
    messages.success(
        request,
        f"Run {number} is archived and hidden from lists.",
        extra_tags=reverse("run-unarchive", args=[number]),
    )
    return redirect("run", number)


@require_POST
@needs(Role.CONTRIBUTOR)
def unarchive(request: WorkspaceRequest, number: int) -> HttpResponse:
    run_actions.unarchive(run_numbered(request.principal, number), request.principal.user)
    messages.success(request, f"Run {number} is shown in lists again.")
    return redirect("run", number)
