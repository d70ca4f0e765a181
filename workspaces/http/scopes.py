"""Determines who is behind an ASGI scope, for sockets and raw byte routes, which do not pass Django's
middleware."""

from __future__ import annotations

from importlib import import_module

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from starlette.requests import cookie_parser
from starlette.types import Scope

from live.origins import header, same_origin
from workspaces import tokens
from workspaces.access import Principal, session_principal
from workspaces.models import User
from workspaces.states import TokenScope


def bearer(scope: Scope) -> str | None:
    """Returns the token of `Authorization: Bearer TOKEN`; None without one. Tokens in the URL are never
    read."""
    scheme, _, text = header(scope, "authorization").partition(" ")
    return text.strip() if scheme.lower() == "bearer" and text.strip() else None


async def principal_of_scope(scope: Scope) -> Principal | None:
    """Returns the person behind the scope, by token, otherwise by session. None without either, without
    membership, and for a request of a foreign page.

    Raises TokenRefused for a token that has expired, or that may not do what the request wants. For a socket
    the result is None instead, so that it is not opened."""
    if isinstance(existing := scope.get("principal"), Principal):
        return existing
    token = bearer(scope)
    if token is not None:
        try:
            authenticated: Principal | None = await database_sync_to_async(tokens.authenticate)(
                token, header(scope, tokens.WORKSPACE_HEADER.lower()), header(scope, "user-agent")
            )
            if authenticated is not None:
                require_token_use(authenticated.scope, scope)
        except tokens.TokenRefused:
            if scope["type"] == "websocket":
                return None
            raise
        return authenticated
    key = _session_key(scope)
    if key is None or not _may_use_session(scope):
        return None
    principal: Principal | None = await database_sync_to_async(_principal_of_session)(key)
    return principal


def require_token_use(token_scope: TokenScope, scope: Scope) -> None:
    """Raises TokenRefused if a token of this scope may not make the request of an ASGI scope. A socket only
    reads."""
    method = scope.get("method", "GET") if scope["type"] == "http" else "GET"
    tokens.require_scope(token_scope, method, scope["path"])


def _may_use_session(scope: Scope) -> bool:
    # Outside Django no CSRF token is checked, so a cookie alone may read, but not change anything.
    is_reading = scope["type"] == "http" and scope.get("method") in ("GET", "HEAD")
    return is_reading or same_origin(scope)


def _session_key(scope: Scope) -> str | None:
    return cookie_parser(header(scope, "cookie")).get(settings.SESSION_COOKIE_NAME)


def _principal_of_session(key: str) -> Principal | None:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(request)
    if not isinstance(user, User) or user.password_is_one_time:
        return None
    return session_principal(user, request.session)
