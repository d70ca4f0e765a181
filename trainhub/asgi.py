"""The front door: bytes, static files and health by raw ASGI, sockets by channels, everything else by Django."""

from __future__ import annotations

import os
from typing import Any, cast

from django.core.asgi import get_asgi_application
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django_application = get_asgi_application()

from django.urls import get_resolver  # noqa: E402

from live.middleware import stack  # noqa: E402
from trainhub.interim import optional  # noqa: E402
from trainhub.static_files import HubStatic  # noqa: E402 - needs the apps loaded
from workspaces.scopes import principal_of_scope  # noqa: E402


def _routes(module: str) -> list:
    found = optional(module)
    return list(getattr(found, "routes", [])) if found else []


get_resolver().url_patterns  # noqa: B018 - loads every view now, so that the first page does not wait for it


async def healthz(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


front = Starlette(
    routes=[
        Route("/healthz", healthz),
        Mount("/static", HubStatic()),
        *_routes("jobs.bytes.routes"),
        *_routes("registry.bytes.routes"),
    ]
)
front.router.redirect_slashes = False
front.router.default = cast("ASGIApp", django_application)

_sockets: Any = stack([*_routes("jobs.consumers"), *_routes("clusters.consumers")], principal_of_scope)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    await (_sockets if scope["type"] == "websocket" else front)(scope, receive, send)
