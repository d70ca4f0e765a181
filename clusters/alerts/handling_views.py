"""What people do with an alert on pages: acknowledge and snooze."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from clusters.alerts import alert_handling, presenters
from clusters.alerts.alert_handling import SNOOZES, AlertNotFiring
from clusters.models import Alert
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.http.return_address import return_address
from workspaces.states import Role


@needs(Role.VIEWER)
@require_POST
def acknowledge(request: WorkspaceRequest, pk: int) -> HttpResponse:
    return _handle(
        request, pk, lambda alert: alert_handling.acknowledge(alert, request.principal), "Acknowledged: {}."
    )


@needs(Role.VIEWER)
@require_POST
def snooze(request: WorkspaceRequest, pk: int) -> HttpResponse:
    length = request.POST.get("for", "")
    words = SNOOZES[length][0] if length in SNOOZES else ""
    return _handle(
        request,
        pk,
        lambda alert: alert_handling.snooze(alert, length, request.principal),
        f"Snoozed for {words}: {{}}.",
    )


@needs(Role.VIEWER)
@require_POST
def end_snooze(request: WorkspaceRequest, pk: int) -> HttpResponse:
    return _handle(
        request,
        pk,
        lambda alert: alert_handling.end_snooze(alert, request.principal),
        "Snooze ended: {}.",
    )


def _handle(request: WorkspaceRequest, pk: int, act: Callable[[Alert], None], done: str) -> HttpResponse:
    alert = get_object_or_404(presenters.visible(request.principal.workspace), pk=pk)
    try:
        act(alert)
    except AlertNotFiring as refusal:
        messages.error(request, str(refusal))
    except SpecError as error:
        messages.error(request, f"Nothing was done. {error.field.capitalize()}: {error.message}.")
    else:
        messages.success(request, done.format(presenters.title(alert.kind)))
    return redirect(return_address(request, reverse("alerts")))
