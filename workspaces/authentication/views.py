"""Pages to sign in and out, to change the password, and to confirm it again."""

from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from workspaces import audit, tokens
from workspaces.access import WorkspaceRequest, access_changed, needs, principal
from workspaces.authentication import sessions
from workspaces.authentication.confirmation import (
    ConfirmPasswordForm,
    confirm,
    confirmation_page,
    has_password,
)
from workspaces.authentication.delays import HashingBusy
from workspaces.authentication.sign_in_completion import PASSWORD, complete_sign_in
from workspaces.authentication.sign_in_page import sign_in_context
from workspaces.forms import ChangePasswordForm, SignInForm
from workspaces.models import BrowserSession, User
from workspaces.security_notices.notices import notify_person
from workspaces.states import Role, SignInChange


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    template_name = "workspaces/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_form_kwargs(self) -> dict[str, object]:
        return {**super().get_form_kwargs(), "label_suffix": ""}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), **sign_in_context()}

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if request.headers.get("HX-Request"):
            # A page whose session has ended asks for a fragment; swap in no sign-in form, load the page anew.
            return HttpResponse(headers={"HX-Refresh": "true"})
        return super().dispatch(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: str, **kwargs: object) -> HttpResponse:
        if not settings.SIGN_IN.has_passwords:
            messages.error(request, "This hub accepts no passwords. Use the button below.")
            return redirect("sign-in")
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        return complete_sign_in(self.request, form.get_user(), PASSWORD, self.get_success_url())

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        wait = cast("SignInForm", form).retry_after_s
        if wait:
            response.status_code = 429
            response.headers["Retry-After"] = str(wait)
        return response


class SignOut(LogoutView):
    """Signs out, by POST only as in Django. The sockets of the session are closed."""

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        user = request.user
        response = super().post(request, *args, **kwargs)
        if isinstance(user, User):
            access_changed(user)
        return response


@sensitive_post_parameters()
def password(request: HttpRequest) -> HttpResponse:
    """Changes the password. Not behind `needs`, because it is the one page that is open to a person with a
    one-time password."""
    who = principal(request)
    cast("WorkspaceRequest", request).principal = who
    if not has_password(who.user):
        messages.info(request, "You sign in without a password of this hub, so there is none to change.")
        return redirect("settings")
    form = ChangePasswordForm(request, who.user, request.POST or None)
    if form.is_valid():
        was_one_time = who.user.password_is_one_time
        who.user.password_is_one_time = False
        try:
            form.save()
        except HashingBusy as delay:
            who.user.password_is_one_time = was_one_time
            form.add_error(None, delay.message)
            form.retry_after_s = delay.retry_after_s
        else:
            _end_other_access(request, who.user, form)
            return redirect("settings")
    context = {
        "form": form,
        "is_one_time": who.user.password_is_one_time,
        "is_alone": who.user.password_is_one_time,
    }
    response = render(request, "workspaces/password.html", context, status=429 if form.retry_after_s else 200)
    if form.retry_after_s:
        response.headers["Retry-After"] = str(form.retry_after_s)
    return response


@sensitive_post_parameters()
@needs(Role.VIEWER)
def confirm_password(request: WorkspaceRequest) -> HttpResponse:
    """Confirms the password on a page of its own, for changes through the API in a browser. Other pages ask
    by themselves."""
    back = request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure()):
        back = "/settings/"
    form = ConfirmPasswordForm(request, request.user, request.POST or None)
    if form.is_valid():
        confirm(request)
        return redirect(back)
    response = confirmation_page(request, form, request.get_full_path(), back)
    if not form.is_bound:
        response.status_code = 200
    return response


@needs(Role.VIEWER)
@require_POST
def session_end(request: WorkspaceRequest, pk: int) -> HttpResponse:
    """Signs the person out of one browser. Asks for no password, as signing out does not: nobody gains access
    by it."""
    row = get_object_or_404(BrowserSession, pk=pk, user=request.user)
    if row.session_key == request.session.session_key:
        logout(request)
        access_changed(request.principal.user)
        return redirect("sign-in")
    sessions.end_session(request.principal.user, row)
    messages.success(request, f"Signed out: {row.browser or 'a session'}.")
    return redirect("settings")


@needs(Role.VIEWER)
@require_POST
def sessions_end_others(request: WorkspaceRequest) -> HttpResponse:
    """Signs the person out of all other browsers; their API tokens remain valid."""
    count = sessions.end_other_sessions(request.principal.user, request.session.session_key or "")
    ended = {0: "You are signed in nowhere else.", 1: "One other session has ended."}
    messages.success(request, ended.get(count, f"{count} other sessions have ended."))
    return redirect("settings")


def _end_other_access(request: HttpRequest, user: User, form: ChangePasswordForm) -> None:
    """Ends other sessions (they contain the old password's hash) and, if the person chose so, API tokens.
    Shows what has ended."""
    # Django ends all sessions whose hash of the password differs; this keeps the present one.
    update_session_auth_hash(request, user)
    access_changed(user)
    audit.record(user, "password.changed", user.get_username())
    notify_person(user, SignInChange.PASSWORD)
    message = "Your password is changed; all your other sessions have ended."
    if form.cleaned_data.get("revoke_tokens"):
        revoked = tokens.revoke_all(user)
        audit.record(user, "token.all_revoked", user.get_username(), count=revoked)
        message += (
            f" {revoked} API token{'' if revoked == 1 else 's'} of yours "
            f"{'is' if revoked == 1 else 'are'} revoked."
        )
    elif "revoke_tokens" in form.fields:
        message += " Your API tokens remain valid."
    messages.success(request, message)
