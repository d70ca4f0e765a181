"""The last step of every way to sign in: with a password, by a provider, by a proxy."""

from __future__ import annotations

from django.contrib.auth import login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

from workspaces.authentication.factors import second_step
from workspaces.authentication.sessions import set_way
from workspaces.models import User

BACKEND = "django.contrib.auth.backends.ModelBackend"
PASSWORD = "password"  # noqa: S105 - a word of the audit trail


def complete_sign_in(request: HttpRequest, user: User, way: str, next_address: str) -> HttpResponse:
    """Signs in a person who has proved who they are, and redirects to `next_address` or the dashboard; to the
    page of the second step if the person has a second factor."""
    if second_step.needs_second_step(user):
        second_step.begin(request, user, way, next_address)
        return redirect("second-step")
    begin_session(request, user, way)
    return redirect(local_address(request, next_address))


def begin_session(request: HttpRequest, user: User, way: str, factor: str = "") -> None:
    """Begins the session of a person. `way` and `factor`: how they have signed in, for the audit trail."""
    if user.is_service_account:
        # None has a password, a mail address or an external account, so that no way to sign in leads here.
        raise PermissionDenied(f"{user} is a service account. Nobody signs in as one; it has API tokens.")
    set_way(request, f"{way} and {factor} factor" if factor else way)
    login(request, user, backend=BACKEND)


def local_address(request: HttpRequest, address: str) -> str:
    """Returns `address` if it is one of this hub, otherwise that of the dashboard."""
    is_local = url_has_allowed_host_and_scheme(
        address, {request.get_host()}, require_https=request.is_secure()
    )
    return address if is_local else "/"
