"""Pages: sign in and out, one's own settings and tokens, the workspace's people."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from workspaces import audit, people, tokens
from workspaces.access import WorkspaceRequest, access_changed, needs, principal
from workspaces.forms import MemberForm, RoleForm, SignInForm, TokenForm
from workspaces.models import ApiToken, Membership, User
from workspaces.notifications import channels
from workspaces.sections import SECTIONS
from workspaces.states import Role


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    template_name = "workspaces/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "label_suffix": ""}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.headers.get("HX-Request"):
            # A page whose session has ended asks for a fragment; swap in no sign-in form, load the page anew.
            return HttpResponse(headers={"HX-Refresh": "true"})
        return super().dispatch(request, *args, **kwargs)


class SignOut(LogoutView):
    """By POST only, as in Django; the sockets of the session end with it."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        user = request.user
        response = super().post(request, *args, **kwargs)
        if isinstance(user, User):
            access_changed(user)
        return response


@needs(Role.VIEWER)
def settings(request: WorkspaceRequest) -> HttpResponse:
    return _settings(request)


@needs(Role.VIEWER)
@require_POST
def token_create(request: WorkspaceRequest) -> HttpResponse:
    form = TokenForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _settings(request, token_form=form)
    who = request.principal
    token, text = tokens.issue(who.user, who.workspace, form.cleaned_data["name"])
    audit.record(who.user, "token.created", token.name, who.workspace)
    return _settings(request, new_token=text)


@needs(Role.VIEWER)
@require_POST
def token_revoke(request: WorkspaceRequest, pk: int) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=pk, user=request.principal.user, workspace=request.principal.workspace)
    tokens.revoke(token)
    audit.record(request.principal.user, "token.revoked", token.name, request.principal.workspace)
    messages.success(request, f"Token {token.name} is revoked.")
    return redirect("settings")


@needs(Role.OWNER)
@require_POST
def member_add(request: WorkspaceRequest) -> HttpResponse:
    form = MemberForm(request.POST, label_suffix="")
    if form.is_valid():
        try:
            user, password = people.add(request.principal, form.cleaned_data["username"], form.cleaned_data["role"])
        except people.PeopleError as error:
            form.add_error(error.field, error.message)
        else:
            if password is not None:
                return _settings(request, new_person=user, new_password=password)
            messages.success(request, f"{user} is now {form.cleaned_data['role']}.")
            return redirect("settings")
    return _settings(request, member_form=form)


@needs(Role.OWNER)
@require_POST
def member_role(request: WorkspaceRequest, pk: int) -> HttpResponse:
    membership = get_object_or_404(Membership, pk=pk, workspace=request.principal.workspace)
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
def member_remove(request: WorkspaceRequest, pk: int) -> HttpResponse:
    membership = get_object_or_404(Membership, pk=pk, workspace=request.principal.workspace)
    try:
        people.remove(request.principal, membership)
    except people.PeopleError as error:
        messages.error(request, f"{error.message}.")
    else:
        messages.success(request, f"{membership.user} is no longer a member; their tokens for this workspace are revoked.")
    return redirect("settings")


@sensitive_post_parameters()
def password(request: HttpRequest) -> HttpResponse:
    """Not behind `needs`: the one page that is open to a person with a one-time password."""
    who = principal(request)
    cast("WorkspaceRequest", request).principal = who
    form = PasswordChangeForm(who.user, request.POST or None, label_suffix="")
    if not form.is_valid():
        return render(request, "workspaces/password.html", {"form": form, "is_one_time": who.user.password_is_one_time})
    who.user.password_is_one_time = False
    form.save()
    update_session_auth_hash(request, who.user)
    access_changed(who.user)
    audit.record(who.user, "password.changed", who.user.get_username())
    messages.success(request, "Your password is changed; every other session of yours has ended.")
    return redirect("settings")


def _settings(request: WorkspaceRequest, **shown: object) -> HttpResponse:
    who = request.principal
    found = list(channels.of(who))
    own = ApiToken.objects.filter(user=who.user, workspace=who.workspace, revoked_at=None)
    context = {
        "principal": who,
        "tokens": own.order_by("-created_at"),
        "token_form": TokenForm(label_suffix=""),
        "members": who.workspace.memberships.select_related("user").order_by("user__username"),
        "may_manage": who.may(Role.OWNER),
        "member_form": MemberForm(label_suffix=""),
        "roles": list(Role),
        "channel_count": len(found),
        "channels_paused": sum(channel.paused_at is not None for channel in found),
        "sections": [(section.template, section.told(who)) for section in SECTIONS],
        **shown,
    }
    is_wrong = any(getattr(form, "is_bound", False) for form in shown.values())
    response = render(request, "workspaces/settings.html", context, status=400 if is_wrong else 200)
    # It may hold a token or a password that is shown once.
    response.headers["Cache-Control"] = "no-store"
    return response
