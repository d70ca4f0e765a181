"""Brings browsers to the one host name that keeps the session.

Cookies know no ports: what a browser keeps for 127.0.0.1 it sends to every program at a port of this machine
that its person visits, such as a TensorBoard that a run has started. So where PUBLIC_URL names a host below
localhost, which browsers know as their own machine, people sign in at that name alone."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from live.origins import header
from trainhub import installation


class BrowserAddress:
    """Sends a browser that asks for the sign-in page at 127.0.0.1 or localhost to the host name of
    PUBLIC_URL.

    The port stays the one that was asked for, so this holds through a tunnel (`ssh -L 9000:localhost:8000`)
    too. Programs are left alone, since they often do not find that name; so is every other host name, such as
    a proxy's."""

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
        """Where this request's browser finds the same page under our host name; "" where it is to stay."""
        asked = _asked_address(scope)
        if (
            asked is None
            or asked.hostname not in installation.LOOPBACK
            or not _finds_names_below_localhost(scope)
        ):
            return ""
        port = f":{asked.port}" if asked.port else ""
        query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
        return f"{scope['scheme']}://{self._host}{port}{settings.LOGIN_URL}{query}"


def _finds_names_below_localhost(scope: Scope) -> bool:
    """Whether a person's browser opens a page, and it is one that knows names below localhost by itself.

    Browsers say that they open a page; programs do not. Safari asks the system, which does not know these
    names everywhere."""
    if scope["method"] != "GET" or header(scope, "sec-fetch-mode") != "navigate":
        return False
    agent = header(scope, "user-agent")
    return "Safari/" not in agent or "Chrome/" in agent or "Chromium/" in agent


def _asked_address(scope: Scope) -> SplitResult | None:
    """Host and port of the request; None where its Host header is none."""
    try:
        asked = urlsplit(f"//{header(scope, 'host')}")
        _ = asked.port
    except ValueError:
        return None
    return asked
