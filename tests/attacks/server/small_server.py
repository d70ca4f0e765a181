"""The hub's web server with a small application instead of the hub, in a process of its own with its own
limit on open files.

`python -m tests.attacks.server.small_server PORT JSON`: `files` is the limit on open files, `timeouts` those
of the server, `tls` a certificate and key, `proxies` the words of TRUSTED_PROXIES."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import uvicorn
from django.conf import settings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from trainhub.serving.__main__ import configuration, run
from trainhub.serving.limits import ConnectionLimits, Timeouts, max_open_connections
from trainhub.serving.proxies import TrustedProxies

LARGE = b"x" * 2**25


async def hello(_: Request) -> Response:
    return PlainTextResponse("hello")


async def large(_: Request) -> Response:
    return Response(LARGE)


async def length(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


async def refuse(_: Request) -> Response:
    return PlainTextResponse("who are you?", 401)


async def who(request: Request) -> Response:
    return JSONResponse(
        {"client": request.client.host if request.client else "", "scheme": request.url.scheme}
    )


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(text)


routes = [
    Route("/", hello),
    Route("/large", large),
    Route("/length", length, methods=["POST"]),
    Route("/who", who),
    Route("/refuse", refuse, methods=["POST"]),
    WebSocketRoute("/echo", echo),
]


def main() -> None:
    port, facts = int(sys.argv[1]), json.loads(sys.argv[2])
    settings.configure(PUBLIC_URL=f"http://127.0.0.1:{port}")
    files = facts.get("files", 1024)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    limits = ConnectionLimits(max_open_connections(), Timeouts(**facts.get("timeouts", {})))
    tls: dict[str, Any] = dict(zip(("ssl_certfile", "ssl_keyfile"), facts.get("tls", ()), strict=False))
    proxies = TrustedProxies(facts.get("proxies", ()))
    config = configuration(Starlette(routes=routes), limits, proxies, port=port, lifespan="off", **tls)
    run(uvicorn.Server(config), limits, proxies)


if __name__ == "__main__":
    main()
