"""Handles the form with the selected runs of the table."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from tracking.history import bulk
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.http.return_address import return_address
from workspaces.states import Role


@require_POST
@needs(Role.VIEWER)
def act(request: WorkspaceRequest) -> HttpResponse:
    form = request.POST
    numbers = [
        int(text) for text in form.getlist("run") if text.isascii() and text.isdecimal() and len(text) < 10
    ]
    verb = form.get("verb", "")
    if verb == "compare":
        return redirect(f"{reverse('compare')}?{urlencode({'runs': ','.join(map(str, numbers))})}")
    try:
        report = bulk.apply_to_runs(
            request.principal, verb, numbers, key=form.get("key", ""), value=form.get("value", "")
        )
    except bulk.BulkNotAllowed as error:
        raise PermissionDenied(str(error)) from error
    except SpecError as error:
        messages.error(request, f"Nothing was done. {error.field.capitalize()}: {error.message}.")
    else:
        for went_well, sentence in report.sentences():
            (messages.success if went_well else messages.error)(request, sentence)
    return redirect(return_address(request, reverse("runs")))
