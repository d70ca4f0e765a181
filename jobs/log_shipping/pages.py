"""The page of a workspace's log system, under Settings; for owners."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from jobs.log_shipping import targets, workspace_targets
from jobs.log_shipping.destinations import LOKI, OTLP, DestinationError
from jobs.log_shipping.models import LogTarget
from workspaces.access import Principal, WorkspaceRequest, needs
from workspaces.authentication.confirmation import requires_password
from workspaces.settings_sections import Section
from workspaces.states import Role

KIND_LABELS = [(OTLP, "OpenTelemetry (OTLP over HTTP)"), (LOKI, "Loki")]


class LogTargetForm(forms.Form):
    kind = forms.ChoiceField(choices=KIND_LABELS)
    url = forms.CharField(
        max_length=1000,
        label="Address",
        help_text="For example https://collector.example.org:4318 or https://loki.example.org.",
    )
    headers = forms.CharField(
        max_length=4000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="One a line, such as Authorization: Bearer {secret:NAME} with a secret of the workspace.",
    )
    labels = forms.CharField(
        max_length=1000, required=False, help_text="Added to every line, such as env=prod, site=north."
    )
    ca = forms.CharField(
        max_length=100_000,
        required=False,
        label="Certificate authority",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="In PEM, if the certificate of the log system is from an authority of your own.",
    )

    def __init__(self, data: Any, target: LogTarget | None) -> None:
        initial = {name: getattr(target, name) for name in workspace_targets.FIELDS} if target else None
        super().__init__(data, initial=initial, label_suffix="")


@sensitive_post_parameters()
@needs(Role.OWNER)
@requires_password
def log_target(request: WorkspaceRequest) -> HttpResponse:
    target = workspace_targets.target_of(request.principal)
    form = LogTargetForm(request.POST or None, target)
    if form.is_valid():
        try:
            stored = workspace_targets.store_target(request.principal, form.cleaned_data)
        except DestinationError as error:
            form.add_error(error.field, f"{error.message[:1].upper()}{error.message[1:]}.")
        else:
            messages.success(
                request, f"Lines of runs go to {targets.state_of(stored).host}. Send a test line."
            )
            return redirect("log-target")
    context = {"form": form, "principal": request.principal, **_state(target)}
    is_fragment = request.headers.get("HX-Request") and not form.is_bound
    page = "jobs/log_shipping/_state.html" if is_fragment else "jobs/log_shipping/log_target.html"
    return render(request, page, context, status=400 if form.is_bound else 200)


@needs(Role.OWNER)
@require_POST
def log_target_test(request: WorkspaceRequest) -> HttpResponse:
    workspace_targets.request_test(request.principal, _target(request))
    messages.success(request, "A test line is sent within seconds; this page shows the result.")
    return redirect("log-target")


@needs(Role.OWNER)
@require_POST
@requires_password
def log_target_delete(request: WorkspaceRequest) -> HttpResponse:
    workspace_targets.remove_target(request.principal, _target(request))
    messages.success(request, "Lines of runs are not shipped any more.")
    return redirect("settings")


def section_context(who: Principal) -> dict[str, Any]:
    target = workspace_targets.target_of(who) if who.may(Role.OWNER) else None
    return {"may_change": who.may(Role.OWNER), **_state(target)}


SECTION = Section("jobs/log_shipping/_section.html", section_context)


def _state(target: LogTarget | None) -> dict[str, Any]:
    return {"row": target, "target": targets.state_of(target) if target else None}


def _target(request: WorkspaceRequest) -> LogTarget:
    target = workspace_targets.target_of(request.principal)
    if target is None:
        raise Http404
    return target
