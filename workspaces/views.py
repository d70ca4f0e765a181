"""Pages for a person's own settings and tokens, and for the members of the workspace."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from workspaces import audit, people, tokens
from workspaces.access import WorkspaceRequest, needs
from workspaces.authentication.confirmation import requires_password
from workspaces.authentication.sessions import own_sessions
from workspaces.forms import MemberForm, RoleForm, TokenForm
from workspaces.http.secret_pages import never_store
from workspaces.models import Invitation, Membership
from workspaces.notifications import channels
from workspaces.service_accounts import accounts as service_accounts
from workspaces.settings_sections import SECTIONS
from workspaces.states import Role


@needs(Role.VIEWER)
def settings(request: WorkspaceRequest) -> HttpResponse:
    return _settings(request)


@needs(Role.VIEWER)
@require_POST
@requires_password
def token_create(request: WorkspaceRequest) -> HttpResponse:
    form = TokenForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _settings(request, token_form=form)
    who = request.principal
    fields = form.cleaned_data
    workspace = None if form.is_for_all else who.workspace
    token, text = tokens.issue(
        who.user, workspace, fields["name"], scope=fields["scope"], lifetime=form.lifetime
    )
    audit.record(
        who.user,
        "token.created",
        token.name,
        who.workspace,
        scope=token.scope,
        acts_in_all=form.is_for_all,
    )
    return _settings(request, new_token=text)


@needs(Role.VIEWER)
@require_POST
@requires_password
def token_revoke(request: WorkspaceRequest, pk: int) -> HttpResponse:
    token = get_object_or_404(tokens.own(request.principal), pk=pk)
    tokens.revoke(token)
    audit.record(request.principal.user, "token.revoked", token.name, request.principal.workspace)
    messages.success(request, f"Token {token.name} is revoked.")
    return redirect("settings")


@needs(Role.OWNER)
@require_POST
@requires_password
def member_add(request: WorkspaceRequest) -> HttpResponse:
    form = MemberForm(request.POST, label_suffix="")
    if form.is_valid():
        try:
            added = people.add(request.principal, form.cleaned_data["username"], form.cleaned_data["role"])
        except people.PeopleError as error:
            form.add_error(error.field, error.message)
        else:
            if added.password is not None:
                return _settings(request, new_person=added.user, new_password=added.password)
            messages.success(request, f"{added.user} is invited. They become a member when they accept.")
            return redirect("settings")
    return _settings(request, member_form=form)


@needs(Role.OWNER)
@require_POST
@requires_password
def member_role(request: WorkspaceRequest, pk: int) -> HttpResponse:
    membership = _membership(request, pk)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose viewer, contributor or owner.")
        return redirect("settings")
    try:
        people.change_role(request.principal, membership, form.cleaned_data["role"])
    except people.PeopleError as error:
        messages.error(request, f"{error.message}.")
    else:
        messages.success(request, f"{membership.user} is now {form.cleaned_data['role']}.")
    return redirect("settings")


@needs(Role.OWNER)
@require_POST
@requires_password
def member_remove(request: WorkspaceRequest, pk: int) -> HttpResponse:
    membership = _membership(request, pk)
    try:
        people.remove(request.principal, membership)
    except people.PeopleError as error:
        messages.error(request, f"{error.message}.")
    else:
        messages.success(
            request, f"{membership.user} is no longer a member; their tokens for this workspace are revoked."
        )
    return redirect("settings")


def _membership(request: WorkspaceRequest, pk: int) -> Membership:
    return get_object_or_404(people.memberships_of(request.principal.workspace), pk=pk)


def _settings(request: WorkspaceRequest, **extra: object) -> HttpResponse:
    who = request.principal
    rows = list(channels.of(who))
    own = tokens.own(who)
    context = {
        "principal": who,
        "browser_sessions": own_sessions(who.user),
        "session_key": request.session.session_key,
        "tokens": own.order_by("-created_at"),
        "token_form": TokenForm(label_suffix=""),
        "now": timezone.now(),
        "invited": Invitation.objects.filter(workspace=who.workspace)
        .select_related("user")
        .order_by("user__username"),
        "members": people.memberships_of(who.workspace),
        "service_accounts": service_accounts.listed(who.workspace),
        "may_manage": who.may(Role.OWNER),
        "member_form": MemberForm(label_suffix=""),
        "roles": list(Role),
        "channel_count": len(rows),
        "channels_paused": sum(channel.paused_at is not None for channel in rows),
        "sections": [(section.template, section.context(who)) for section in SECTIONS],
        **extra,
    }
    is_wrong = any(getattr(form, "is_bound", False) for form in extra.values())
    response = render(request, "workspaces/settings.html", context, status=400 if is_wrong else 200)
    # It may hold a token or a password that is shown once.
    never_store(response)
    return response
