"""Pages for a person who belongs to several workspaces, or is invited to one: accept, decline, switch."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from workspaces import people
from workspaces.access import (
    WorkspaceRequest,
    choose_workspace,
    is_invited,
    membership_principal,
    needs,
    principal,
    redirect_to_password,
)
from workspaces.authentication.confirmation import ask_for_password
from workspaces.models import Invitation, Membership, User
from workspaces.states import Role


def invitations(request: HttpRequest) -> HttpResponse:
    """Lists invitations. Not behind `needs`, because a person without membership may answer an invitation.
    Without either the answer is 404."""
    user = _member_or_invited(request)
    if user.password_is_one_time:
        return redirect_to_password()
    invitations = (
        Invitation.objects.filter(user=user).select_related("workspace", "invited_by").order_by("pk")
    )
    context = {"invitations": invitations, "is_alone": membership_principal(user) is None}
    return render(request, "workspaces/invitations.html", context)


@require_POST
def invitation_accept(request: WorkspaceRequest, pk: int) -> HttpResponse:
    invitation = _invitation(request, pk)
    page = ask_for_password(request)
    if page is not None:
        return page
    membership = people.accept_invitation(request.user, invitation)
    if membership is None:
        raise Http404
    choose_workspace(request, membership.workspace)
    messages.success(
        request,
        f"You are {membership.role} of {membership.workspace} now, and this page shows that workspace.",
    )
    return redirect("dashboard")


@require_POST
def invitation_decline(request: WorkspaceRequest, pk: int) -> HttpResponse:
    invitation = _invitation(request, pk)
    people.decline(request.user, invitation)
    messages.success(request, f"You have declined the invitation to {invitation.workspace}.")
    return redirect("dashboard" if membership_principal(request.user) else "sign-in")


@needs(Role.OWNER)
@require_POST
def invitation_withdraw(request: WorkspaceRequest, pk: int) -> HttpResponse:
    page = ask_for_password(request)
    if page is not None:
        return page
    invitation = get_object_or_404(
        Invitation.objects.select_related("user"), pk=pk, workspace=request.principal.workspace
    )
    people.withdraw(request.principal, invitation)
    messages.success(request, f"{invitation.user} is no longer invited.")
    return redirect("settings")


@needs(Role.VIEWER)
@require_POST
def workspace_choose(request: WorkspaceRequest, pk: int) -> HttpResponse:
    """Changes the workspace that every page of this session shows."""
    membership = get_object_or_404(
        Membership.objects.select_related("workspace"), user=request.user, workspace_id=pk
    )
    choose_workspace(request, membership.workspace)
    return redirect("dashboard")


def _member_or_invited(request: HttpRequest) -> User:
    user = request.user
    if isinstance(user, User):
        if membership_principal(user) is not None:
            request.principal = principal(request)  # type: ignore[attr-defined]
            return user
        if is_invited(user):
            return user
    raise Http404


def _invitation(request: HttpRequest, pk: int) -> Invitation:
    """Returns an invitation of this person; 404 for anybody else's."""
    user = _member_or_invited(request)
    return get_object_or_404(Invitation.objects.select_related("workspace"), pk=pk, user=user)
