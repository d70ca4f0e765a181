"""Begins and ends signing in by a provider of OpenID Connect. Without OIDC_ISSUER there are no such pages."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Protocol, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from workspaces.access import NO_WORKSPACE, WorkspaceRequest, may_enter, needs
from workspaces.authentication.confirmation import requires_password
from workspaces.authentication.external import accounts
from workspaces.authentication.external.accounts import SignInRefused
from workspaces.authentication.external.exchange import Exchanged, ExchangeFailed
from workspaces.authentication.password_check import client_address, record_failure
from workspaces.authentication.sign_in_completion import complete_sign_in
from workspaces.http.return_address import return_address
from workspaces.http.secret_pages import never_store
from workspaces.models import User
from workspaces.states import Role

log = logging.getLogger(__name__)
EXCHANGE = "workspaces.authentication.external.oidc"


class ExchangeModule(Protocol):
    """What EXCHANGE offers; see there."""

    def provider_address(
        self, request: HttpRequest, next_address: str, connect: int | None, *, asks_again: bool
    ) -> str: ...

    def finish_exchange(self, request: HttpRequest) -> HttpResponse: ...


@login_not_required
@require_POST
def oidc_begin(request: HttpRequest) -> HttpResponse:
    """Sends the browser to the provider; by POST with CSRF, so that no other site can begin it."""
    asks_again = isinstance(request.user, User)
    return _to_provider(request, return_address(request, ""), None, asks_again=asks_again)


@needs(Role.VIEWER)
@require_POST
@requires_password
def oidc_connect(request: WorkspaceRequest) -> HttpResponse:
    """Sends a person who is signed in to the provider, to connect their account there."""
    return _to_provider(request, "/settings/profile/", request.user.pk, asks_again=False)


@login_not_required
@require_GET
def oidc_callback(request: HttpRequest) -> HttpResponse:
    """Where the provider sends the browser back to."""
    try:
        return _exchange_module().finish_exchange(request)
    except ExchangeFailed as failure:
        log.warning("A sign-in by OpenID Connect failed: %s %s", failure.message, failure.reason)
        return _refused(request, failure.message)
    except Exchanged as result:
        return _enter(request, result)
    except SignInRefused as refusal:
        return _refused(request, refusal.message)


def _enter(request: HttpRequest, result: Exchanged) -> HttpResponse:
    identity = result.identity
    try:
        if result.connect is not None:
            return _connect(request, result)
        user = accounts.sign_in_person(identity)
        if not may_enter(user, result.next_address):
            raise SignInRefused(NO_WORKSPACE.format(name=user.get_username()))
    except SignInRefused as refusal:
        name = identity.username or identity.subject
        record_failure(name, client_address(request), way=identity.way, reason=refusal.message)
        return _refused(request, refusal.message)
    return complete_sign_in(request, user, identity.way, result.next_address)


def _connect(request: HttpRequest, result: Exchanged) -> HttpResponse:
    # The session may have ended, or belong to somebody else meanwhile.
    if not isinstance(request.user, User) or request.user.pk != result.connect:
        raise SignInRefused("You were signed out meanwhile. Sign in and connect the account again.")
    accounts.connect(request.user, result.identity)
    messages.success(request, f"You can sign in with {settings.SIGN_IN.oidc.name} now.")
    return redirect("profile")


def _to_provider(
    request: HttpRequest, next_address: str, connect: int | None, *, asks_again: bool
) -> HttpResponse:
    try:
        address = _exchange_module().provider_address(request, next_address, connect, asks_again=asks_again)
    except ExchangeFailed as failure:
        log.warning("OpenID Connect: %s %s", failure.message, failure.reason)
        return _refused(request, failure.message)
    # No redirect: the policy of our pages lets forms lead to this hub only.
    context = {"address": address, "name": settings.SIGN_IN.oidc.name, "is_alone": True}
    response = render(request, "workspaces/to_provider.html", context)
    response["Refresh"] = f"0; url={address}"
    never_store(response)
    return response


def _refused(request: HttpRequest, message: str) -> HttpResponse:
    messages.error(request, message)
    return redirect("profile" if isinstance(request.user, User) else "sign-in")


def _exchange_module() -> ExchangeModule:
    """Returns the module with allauth. Raises Http404 in a hub that has no provider."""
    if not settings.SIGN_IN.oidc.issuer:
        raise Http404
    return cast("ExchangeModule", import_module(EXCHANGE))
