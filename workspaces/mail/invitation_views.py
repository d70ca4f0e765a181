"""Pages by which owners and operators invite people without an account, and the page of such a link."""

from __future__ import annotations

from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from workspaces.access import (
    Principal,
    WorkspaceRequest,
    choose_workspace,
    lacking,
    may_operate,
    membership_principal,
    needs,
    principal,
    redirect_to_password,
)
from workspaces.authentication.confirmation import ask_for_password, requires_password
from workspaces.authentication.delays import HashingBusy
from workspaces.http.secret_pages import never_store
from workspaces.mail import invitation_links
from workspaces.mail.errors import MailError
from workspaces.mail.forms import InvitationForm, NewAccountForm, sentence
from workspaces.models import InvitationLink, User, Workspace
from workspaces.states import Role

FIELD_LABELS = {"address": "This address", "workspace": "This workspace"}


@needs(Role.VIEWER)
def invitations(request: WorkspaceRequest) -> HttpResponse:
    _must_invite(request.principal)
    return _invitations(request)


@needs(Role.VIEWER)
@require_POST
@requires_password
def invitation_create(request: WorkspaceRequest) -> HttpResponse:
    who = request.principal
    _must_invite(who)
    form = InvitationForm(_workspaces_of(who), request.POST)
    if not form.is_valid():
        return _invitations(request, form=form)
    fields = form.cleaned_data
    try:
        if fields["address"].strip():
            invitation = invitation_links.invite_address(
                who.user, fields["workspace"], fields["role"], fields["address"]
            )
            messages.success(request, f"An invitation is on its way to {invitation.address}.")
            return redirect("invitation-links")
        invitation, address = invitation_links.create_link(who.user, fields["workspace"], fields["role"])
    except MailError as error:
        form.add_error(error.field, sentence(error, FIELD_LABELS.get(error.field, "")))
        return _invitations(request, form=form)
    return _invitations(request, link=invitation, link_address=address)


@needs(Role.VIEWER)
@require_POST
@requires_password
def invitation_link_withdraw(request: WorkspaceRequest, pk: int) -> HttpResponse:
    _must_invite(request.principal)
    invitation = get_object_or_404(
        InvitationLink.objects.select_related("workspace"),
        pk=pk,
        workspace__in=_workspaces_of(request.principal),
    )
    invitation_links.withdraw(request.principal.user, invitation)
    messages.success(request, "The invitation is withdrawn; its link no longer works.")
    return redirect("invitation-links")


@login_not_required
@sensitive_post_parameters()
def invitation_open(request: HttpRequest, text: str) -> HttpResponse:
    """The page of an invitation's link: joins with the account of the session, or makes a new account."""
    invitation = invitation_links.find_invitation(text)
    if invitation is None:
        return _gone(request)
    if isinstance(request.user, User):
        return _accept(cast("WorkspaceRequest", request), request.user, invitation)
    if not settings.SIGN_IN.has_passwords:
        # A new account is made by signing in at the provider.
        return redirect(f"{reverse('sign-in')}?{urlencode({'next': request.path})}")
    form = NewAccountForm(invitation.address, request.POST or None)
    if form.is_valid():
        try:
            user = invitation_links.accept_as_new(
                invitation, form.cleaned_data["username"], form.cleaned_data["new_password1"]
            )
        except MailError as error:
            form.add_error("username", sentence(error))
        except HashingBusy as delay:
            form.add_error(None, delay.message)
            form.retry_after_s = delay.retry_after_s
        else:
            if user is None:
                return _gone(request)
            messages.success(request, f"Your account {user} is there. Sign in with it.")
            return redirect("sign-in")
    context = {"form": form, "invitation": invitation, "is_alone": True, "path": request.path}
    response = render(
        request, "workspaces/mail/invitation.html", context, status=429 if form.retry_after_s else 200
    )
    if form.retry_after_s:
        response.headers["Retry-After"] = str(form.retry_after_s)
    never_store(response)
    return response


def _accept(request: WorkspaceRequest, user: User, invitation: InvitationLink) -> HttpResponse:
    if user.password_is_one_time:
        return redirect_to_password()
    is_member = membership_principal(user) is not None
    if is_member:
        request.principal = principal(request)
    if request.method != "POST":
        context = {
            "invitation": invitation,
            "is_alone": not is_member,
            "is_joined": invitation.workspace.memberships.filter(user=user).exists(),
        }
        response = render(request, "workspaces/mail/invitation_accept.html", context)
        never_store(response)
        return response
    page = ask_for_password(request)
    if page is not None:
        return page
    membership = invitation_links.accept(user, invitation)
    if membership is None:
        return _gone(request)
    choose_workspace(request, membership.workspace)
    messages.success(
        request,
        f"You are {membership.role} of {membership.workspace} now, and this page shows that workspace.",
    )
    return redirect("dashboard")


def _gone(request: HttpRequest) -> HttpResponse:
    return render(request, "workspaces/mail/link_gone.html", {"is_alone": True}, status=404)


def _must_invite(who: Principal) -> None:
    """Raises PermissionDenied unless the person is an owner here or an operator."""
    if not may_operate(who.user) and not who.may(Role.OWNER):
        raise PermissionDenied(lacking(who, Role.OWNER))


def _workspaces_of(who: Principal) -> list[Workspace]:
    """Returns the workspaces to which the person may invite: operators all, an owner the present one."""
    if not may_operate(who.user):
        return [who.workspace]
    return list(Workspace.objects.filter(archived_at=None).order_by("name"))


def _invitations(request: WorkspaceRequest, **extra: object) -> HttpResponse:
    who = request.principal
    workspaces = _workspaces_of(who)
    if not workspaces:
        raise Http404
    rows = InvitationLink.objects.filter(workspace__in=workspaces).select_related("workspace")
    context = {
        "rows": rows.order_by("-pk"),
        "form": InvitationForm(workspaces, initial={"workspace": who.workspace.pk}),
        "sends_mail": bool(settings.EMAIL_URL),
        **extra,
    }
    response = render(
        request, "workspaces/mail/invitations.html", context, status=400 if "form" in extra else 200
    )
    # It may hold a link that is shown once.
    never_store(response)
    return response
