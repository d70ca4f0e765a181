"""Measures how long the web server takes for each request, by its route."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workspaces.hub_metrics.instruments import OPEN_SOCKETS, REQUEST_SECONDS

# Set by Django's part of the hub, which knows its own routes.
ROUTE = "trainhub.route"
# An address that nothing serves: anybody may ask for any number of those.
UNKNOWN = "(unknown)"
# The same for methods: a client may invent them.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestTimes:
    """Observes each HTTP request of `app`, a Starlette application with Django behind it, and counts its open
    sockets."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Django ends without an answer where the client has gone.
        started, status, route = time.perf_counter(), "canceled", [UNKNOWN]

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = f"{message['status'] // 100}xx"
            await send(message)

        scope[ROUTE] = route
        try:
            await self._app(scope, receive, noting)
        except asyncio.CancelledError:
            # The client has gone, or the server ends.
            status = "canceled"
            raise
        except Exception:
            status = "5xx"
            raise
        finally:
            # Starlette notes the route that it has chosen; what it does not know is Django's.
            name = getattr(scope.get("route"), "path", route[0])
            method = scope["method"] if scope["method"] in METHODS else "other"
            REQUEST_SECONDS.labels(method, name, status).observe(time.perf_counter() - started)


class NotedRoute:
    """Django's middleware that tells RequestTimes the route of a request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_view(self, request: HttpRequest, *_: object) -> None:
        # Requests of tests have no scope.
        noted = getattr(request, "scope", {}).get(ROUTE)
        if noted is not None and request.resolver_match is not None:
            noted[0] = f"/{request.resolver_match.route}"


class OpenSockets:
    """Counts the open sockets of `app`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with OPEN_SOCKETS.track_inprogress():
            await self._app(scope, receive, send)
