"""Checks the Host header of every request, as Django does for its own part of them."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MAX_LABEL_CHARS = 100


class HostCheck:
    """Answers 400 if the Host header is none of ALLOWED_HOSTS, before any other code sees the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or _is_allowed(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _refusal(scope)(scope, receive, send)


def _is_allowed(scope: Scope) -> bool:
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) > 1:
        return False
    if not hosts:
        # HTTP/1.0 needs none, and the health checks of some proxies send none. Django then takes the server's
        # own address.
        return True
    domain, _ = split_domain_port(hosts[0].decode("latin-1"))
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _refusal(scope: Scope) -> JSONResponse:
    named = b", ".join(value for name, value in scope["headers"] if name == b"host").decode("latin-1")[
        :MAX_LABEL_CHARS
    ]
    detail = (
        f"Host: {named} is none of this hub's names. Use {urlsplit(settings.PUBLIC_URL).netloc}, or have "
        "the hub's operator add "
        "the name to ALLOWED_HOSTS."
    )
    body = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": detail}
    return JSONResponse(body, 400, media_type="application/problem+json", headers={"Connection": "close"})
