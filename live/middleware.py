"""The checks before every socket opens: its origin or token, its principal, and its address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from channels.routing import URLRouter
from django.db.models import Model
from django.urls import URLPattern, URLResolver, re_path
from starlette.types import ASGIApp, Receive, Scope, Send

from live.origins import header, same_origin

if TYPE_CHECKING:
    from django.http import HttpResponse

Authenticate = Callable[[Scope], Awaitable["SocketPrincipal | None"]]


class SocketPrincipal(Protocol):
    """What `authenticate` returns: the person behind a socket. Sockets are closed when this person loses
    access."""

    @property
    def user(self) -> Model: ...


def stack(routes: Sequence[URLPattern | URLResolver], authenticate: Authenticate) -> ASGIApp:
    """Returns the ASGI application of all sockets. `authenticate`, which a higher floor provides, returns the
    principal of a scope, or None.

    It refuses before the handshake: sockets of foreign pages, sockets without a principal, and unknown
    addresses. All others get `scope["principal"]`, and `scope["authenticate"]` to authenticate again.
    """
    # URLRouter calls ASGI applications, but Django's types expect a view in a route.
    refuse = cast("Callable[..., HttpResponse]", _refuse)
    # Without this last route, URLRouter raises ValueError for an unknown address, which ends in the log.
    router = URLRouter([*routes, re_path(r"", refuse)])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        principal = None
        # Browsers send cookies with a socket that any page opens, so a cookie counts only from our own pages.
        # A page cannot set the Authorization header of a socket: who sends one is a program with a token.
        if header(scope, "authorization") or same_origin(scope):
            principal = await authenticate(scope)
        if principal is None:
            await _refuse(scope, receive, send)
        else:
            await router(
                {**scope, "principal": principal, "authenticate": partial(authenticate, scope)}, receive, send
            )

    return app


async def _refuse(_: Scope, receive: Receive, send: Send) -> None:
    # The first message is websocket.connect; closing before it is accepted is answered with HTTP 403.
    await receive()
    await send({"type": "websocket.close", "code": 4403})
