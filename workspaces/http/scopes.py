"""Who is behind an ASGI scope, for what does not pass Django's middleware: sockets and the raw byte
routes."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from live.origins import header, same_origin
from workspaces import tokens
from workspaces.access import Principal, session_principal
from workspaces.models import User
from workspaces.states import TokenScope


def bearer(scope: Mapping[str, Any]) -> str | None:
    """The token of `Authorization: Bearer TOKEN`; None without one. Tokens in the address are never read."""
    scheme, _, text = header(scope, "authorization").partition(" ")
    return text.strip() if scheme.lower() == "bearer" and text.strip() else None


async def principal_of_scope(scope: Mapping[str, Any]) -> Principal | None:
    """Token first, else the browser's session; None for nobody, for a stranger, and for a foreign page's
    request.

    Raises TokenRefused for a token that has expired, or that may not do what the request asks for. A socket
    is opened for neither, so there the answer is None."""
    if isinstance(known := scope.get("principal"), Principal):
        return known
    token = bearer(scope)
    if token is not None:
        try:
            found = await database_sync_to_async(tokens.authenticate)(token)
            if found is not None:
                require_scope(found.scope, scope)
        except tokens.TokenRefused:
            if scope["type"] == "websocket":
                return None
            raise
        return found
    key = _session_key(scope)
    if key is None or not _may_use_session(scope):
        return None
    return await database_sync_to_async(_principal_of_session)(key)


def require_scope(token_scope: TokenScope, scope: Mapping[str, Any]) -> None:
    """Whether a token of this scope may make the request of an ASGI scope; a socket only reads. Raises
    TokenRefused."""
    method = scope.get("method", "GET") if scope["type"] == "http" else "GET"
    tokens.require_scope(token_scope, method, scope["path"])


def _may_use_session(scope: Mapping[str, Any]) -> bool:
    # Outside Django no CSRF token is checked, so a cookie alone may read, but not change anything.
    is_reading = scope["type"] == "http" and scope.get("method") in ("GET", "HEAD")
    return is_reading or same_origin(scope)


def _session_key(scope: Mapping[str, Any]) -> str | None:
    try:
        cookies = SimpleCookie(header(scope, "cookie"))
    except CookieError:
        return None
    morsel = cookies.get(settings.SESSION_COOKIE_NAME)
    return morsel.value if morsel else None


def _principal_of_session(key: str) -> Principal | None:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(request)
    if not isinstance(user, User) or user.password_is_one_time:
        return None
    return session_principal(user, request.session)
