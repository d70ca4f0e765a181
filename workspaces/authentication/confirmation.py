"""Asks for the password again before tokens, machines, people or notification secrets are changed on a page.

A session cookie may become known to others, because browsers send it to every port of the host. So a page
that changes one of these shows a form for the password first, unless the password was typed in this session
within the last 10 minutes. That form contains all fields of the original request and sends them again
together with the password, so nothing has to be typed twice. Programs with API tokens are not affected."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from workspaces.access import WorkspaceRequest
from workspaces.authentication.delays import AuthenticationDelayed
from workspaces.authentication.factors.proof import CODE_DIGITS, accept_proof
from workspaces.authentication.factors.totp import has_totp
from workspaces.authentication.password_check import is_password_of
from workspaces.http.secret_pages import never_store
from workspaces.models import User

P = ParamSpec("P")
CONFIRMED_AT = "password_confirmed_at"
CONFIRMED_FOR_S = 10 * 60
FIELD = "confirm_password"
VOUCHED = "vouched_by_proxy"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
View = Callable[Concatenate[WorkspaceRequest, P], HttpResponseBase]


class ConfirmPasswordForm(forms.Form):
    confirm_password = forms.CharField(
        label="Password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )

    def __init__(self, request: HttpRequest, user: User, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, label_suffix="")
        self._request, self._user = request, user
        self._has_app = has_totp(user)
        self.retry_after_s = 0
        if self._has_app:
            words = "Password, or code of your app" if has_password(user) else "Code of your app"
            self.fields[FIELD].label = words

    def clean_confirm_password(self) -> str:
        password = str(self.cleaned_data[FIELD])
        try:
            is_right = self._is_right(password)
        except AuthenticationDelayed as delay:
            self.retry_after_s = delay.retry_after_s
            raise ValidationError(delay.message) from delay
        if not is_right:
            raise ValidationError(
                "This is neither your password nor a new code of your app."
                if self._has_app
                else "This is not your password. Passwords are case-sensitive."
            )
        return password

    def _is_right(self, text: str) -> bool:
        # No password is as short as a code.
        if self._has_app and len("".join(text.split())) == CODE_DIGITS:
            return accept_proof(self._request, self._user, text, "")
        return has_password(self._user) and is_password_of(self._request, self._user, text)


def is_confirmed(session: Mapping[str, Any]) -> bool:
    """Returns whether the password was typed in this session within the last 10 minutes."""
    at = session.get(CONFIRMED_AT)
    # A clock that was set back must not extend the time.
    return isinstance(at, float) and 0 <= time.time() - at < CONFIRMED_FOR_S


def set_vouched(request: HttpRequest, *, is_vouched: bool) -> None:
    """Notes whether a trusted proxy has named the person of this request in a header of the request itself.
    Such a request needs no password: a copy of the cookie does not come through the proxy."""
    setattr(request, VOUCHED, is_vouched)


def is_confirmed_request(request: HttpRequest) -> bool:
    """Returns whether a change may be made without asking for the password."""
    return getattr(request, VOUCHED, False) or is_confirmed(request.session)


def requires_password(view: View[P]) -> View[P]:
    """Decorates a view behind `needs`: a change is made only if the password was typed recently."""

    @wraps(view)
    def confirmed(request: WorkspaceRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        page = ask_for_password(request)
        return view(request, *args, **kwargs) if page is None else page

    return confirmed


def ask_for_password(request: WorkspaceRequest) -> HttpResponse | None:
    """Returns None if the request may proceed, otherwise the page that asks for the password and contains the
    fields of the request."""
    if request.method in SAFE_METHODS or is_confirmed_request(request):
        return None
    form = ConfirmPasswordForm(request, request.user, request.POST if FIELD in request.POST else None)
    if form.is_valid():
        confirm(request)
        # The view sees the form as it would have been without the question.
        _forget_password(request)
        return None
    return confirmation_page(request, form, request.get_full_path(), _previous_page(request))


def has_password(user: User) -> bool:
    """Returns whether the person can confirm a change with a password. Others sign in again by their
    provider."""
    return bool(settings.SIGN_IN.has_passwords) and user.has_usable_password()


def confirm(request: HttpRequest) -> None:
    """Records that the password was typed now. The session gets a new key, so that a copy of the old cookie
    becomes useless."""
    request.session.cycle_key()
    request.session[CONFIRMED_AT] = time.time()


def confirmation_page(
    request: HttpRequest, form: ConfirmPasswordForm, action: str, back: str
) -> HttpResponse:
    dropped = (FIELD, "csrfmiddlewaretoken")
    fields = [
        (name, value) for name, values in request.POST.lists() for value in values if name not in dropped
    ]
    status = 429 if form.retry_after_s else 403
    user = cast("User", request.user)
    # Somebody who answers an invitation may be a member of nothing yet, and then has no pages to go to.
    context = {
        "form": form,
        "action": action,
        "fields": fields,
        "back": back,
        "is_alone": not hasattr(request, "principal"),
        "can_type": has_password(user) or has_totp(user),
        "provider": settings.SIGN_IN.oidc.name if settings.SIGN_IN.oidc.issuer else "",
    }
    response = render(request, "workspaces/confirm_password.html", context, status=status)
    never_store(response)
    if form.retry_after_s:
        response.headers["Retry-After"] = str(form.retry_after_s)
    return response


# The parameters are those of Django's signal.
def confirm_by_sign_in(sender: object, request: HttpRequest, **kwargs: object) -> None:  # noqa: ARG001
    """Receives the signal `user_logged_in`: a person who signs in has just typed the password."""
    request.session[CONFIRMED_AT] = time.time()


def _forget_password(request: HttpRequest) -> None:
    sent = request.POST.copy()
    del sent[FIELD]
    sent._mutable = False
    request.POST = sent  # type: ignore[assignment]


def _previous_page(request: HttpRequest) -> str:
    referer = request.headers.get("Referer", "")
    # Only to pages of this hub: a link back to another host would be an open redirect.
    if not url_has_allowed_host_and_scheme(referer, {request.get_host()}, require_https=request.is_secure()):
        return "/settings/"
    parts = urlsplit(referer)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
