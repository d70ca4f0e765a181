"""Redirects browsers to the one host name at which people sign in.

Cookies are not bound to a port: a browser sends the cookies of 127.0.0.1 to every program at a port of this
machine that the person visits, such as a TensorBoard that a run has started. So if PUBLIC_URL names a host
below localhost, which browsers resolve to their own machine, people sign in at that name only."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from live.origins import header
from trainhub import installation


class BrowserAddress:
    """Redirects a browser that requests the sign-in page at 127.0.0.1 or localhost to the host name of
    PUBLIC_URL.

    The port stays as requested, so this works through a tunnel (`ssh -L 9000:localhost:8000`), too. Programs
    are not redirected, since they often cannot resolve that name; nor are requests to other host names, such
    as a proxy's."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._host = urlsplit(settings.PUBLIC_URL).hostname or ""
        self._is_needed = installation.is_for_browsers_only(settings.PUBLIC_URL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = ""
        if self._is_needed and scope["type"] == "http" and scope["path"] == settings.LOGIN_URL:
            address = self._other_address(scope)
        await (RedirectResponse(address, status_code=302) if address else self._app)(scope, receive, send)

    def _other_address(self, scope: Scope) -> str:
        """Returns the address of the same page under the hub's host name; "" if the request is not to be
        redirected."""
        requested = _requested_address(scope)
        if (
            requested is None
            or requested.hostname not in installation.LOOPBACK
            or not _finds_names_below_localhost(scope)
        ):
            return ""
        port = f":{requested.port}" if requested.port else ""
        query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
        return f"{scope['scheme']}://{self._host}{port}{settings.LOGIN_URL}{query}"


def _finds_names_below_localhost(scope: Scope) -> bool:
    """Returns whether a person's browser opens a page, and the browser resolves names below localhost by
    itself.

    Browsers mark requests that open a page; programs do not. Safari resolves names with the system, which
    does not know these names everywhere."""
    if scope["method"] != "GET" or header(scope, "sec-fetch-mode") != "navigate":
        return False
    agent = header(scope, "user-agent")
    return "Safari/" not in agent or "Chrome/" in agent or "Chromium/" in agent


def _requested_address(scope: Scope) -> SplitResult | None:
    """Returns host and port of the request; None if its Host header is invalid."""
    try:
        address = urlsplit(f"//{header(scope, 'host')}")
        # The port is parsed only here, and raises ValueError if it is no number.
        _ = address.port
    except ValueError:
        return None
    return address
