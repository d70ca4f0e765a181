"""Pages for a person's own channels and those of the workspace, under Settings."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from workspaces.access import WorkspaceRequest, needs
from workspaces.authentication.confirmation import requires_password
from workspaces.http.secret_pages import never_store
from workspaces.models import Channel
from workspaces.notifications import channels, outcomes
from workspaces.notifications.events import SHORT
from workspaces.notifications.forms import ChannelForm
from workspaces.states import Role

TONES = {"working": "completed", "unused": "waiting", "failing": "preparing", "paused": "failed"}
ICONS = {
    "working": "check-circle",
    "unused": "clock",
    "failing": "exclamation-triangle",
    "paused": "pause-circle",
}
MAX_ROWS = 20


@needs(Role.VIEWER)
def listed(request: WorkspaceRequest) -> HttpResponse:
    page = "workspaces/_channels.html" if request.headers.get("HX-Request") else "workspaces/channels.html"
    response = render(request, page, context(request))
    never_store(response)
    return response


@sensitive_post_parameters()
@needs(Role.CONTRIBUTOR)
@requires_password
def added(request: WorkspaceRequest, scope: str) -> HttpResponse:
    if scope not in channels.SCOPES:
        raise Http404
    _must(request, scope)
    form = ChannelForm(request.POST or None)
    if form.is_valid():
        try:
            channel = channels.create(request.principal, scope, form.cleaned_data["kind"], form.cleaned_data)
        except channels.ChannelError as error:
            form.add_error(error.field if error.field in form.fields else None, error.message)
        else:
            messages.success(request, f"{channel.name} now receives messages. Send a test to check it.")
            return redirect("channels")
    context = {"form": form, "scope": scope, "principal": request.principal}
    return render(request, "workspaces/channel.html", context, status=400 if form.is_bound else 200)


@sensitive_post_parameters()
@needs(Role.CONTRIBUTOR)
@requires_password
def changed(request: WorkspaceRequest, pk: int) -> HttpResponse:
    channel = _channel(request, pk)
    form = ChannelForm(request.POST or None, channel=channel)
    if form.is_valid():
        changes = {
            name: value
            for name, value in form.cleaned_data.items()
            if value or name not in ("target", "secret")
        }
        try:
            channels.change(request.principal, channel, changes)
        except channels.ChannelError as error:
            form.add_error(error.field if error.field in form.fields else None, error.message)
        else:
            messages.success(request, f"{channel.name} is changed.")
            return redirect("channels")
    context = {
        "form": form,
        "channel": channel,
        "scope": channels.scope_of(channel),
        "principal": request.principal,
        "deliveries": channel.deliveries.order_by("-pk")[:MAX_ROWS],
    }
    return render(request, "workspaces/channel.html", context, status=400 if form.is_bound else 200)


@needs(Role.CONTRIBUTOR)
@require_POST
def tested(request: WorkspaceRequest, pk: int) -> HttpResponse:
    channel = _channel(request, pk)
    channels.send_test(request.principal, channel)
    messages.success(request, f"A test for {channel.name} is sent within seconds; its row shows the result.")
    return redirect("channels")


@needs(Role.CONTRIBUTOR)
@require_POST
@requires_password
def channel_deleted(request: WorkspaceRequest, pk: int) -> HttpResponse:
    channel = _channel(request, pk)
    channels.delete(request.principal, channel)
    messages.success(request, f"{channel.name} is deleted.")
    return redirect("channels")


def context(request: WorkspaceRequest) -> dict[str, Any]:
    who = request.principal
    rows = [_row(channel) for channel in channels.of(who).order_by("pk")]
    return {
        "principal": who,
        "own": [row for row in rows if row["scope"] == channels.OWN],
        "shared": [row for row in rows if row["scope"] == channels.WORKSPACE],
        "may_add": who.may(Role.CONTRIBUTOR),
        "may_share": who.may(Role.OWNER),
        "is_waiting": any(row["waiting"] for row in rows),
        "tried_for_h": int(outcomes.TRIED_FOR.total_seconds() // 3600),
    }


def _row(channel: Channel) -> dict[str, Any]:
    state = channels.state_of(channel)
    return {
        "channel": channel,
        "scope": channels.scope_of(channel),
        "target": channels.target_label(channel),
        "state": state,
        "tone": TONES[state],
        "icon": ICONS[state],
        "waiting": channel.waiting,  # type: ignore[attr-defined]
        "events": [SHORT[name] for name in channel.events if name in SHORT],
    }


def _channel(request: WorkspaceRequest, pk: int) -> Channel:
    """Returns a channel that this person may see; raises Http404 for any other."""
    channel = channels.of(request.principal).filter(pk=pk).first()
    if channel is None:
        raise Http404
    return channel


def _must(request: WorkspaceRequest, scope: str) -> None:
    if not request.principal.may(channels.NEEDED[scope]):
        raise PermissionDenied("Only an owner can add channels for the workspace; add a personal one.")
