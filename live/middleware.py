"""What stands before every socket: is it our page or a token, who is it, and is there such an address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, cast

from channels.routing import URLRouter
from django.db.models import Model
from django.urls import URLPattern, URLResolver, re_path

from live.origins import header, same_origin

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Authenticate = Callable[[Scope], Awaitable["Asker | None"]]


class Asker(Protocol):
    """Whoever `authenticate` finds; sockets follow the access of this person."""

    @property
    def user(self) -> Model: ...


def stack(routes: Sequence[URLPattern | URLResolver], authenticate: Authenticate) -> App:
    """The socket side of the hub. `authenticate` (a higher floor's) says who asks, None for nobody.

    Refused before the handshake: a foreign page's socket (unless it brings a token, which no
    foreign page can), nobody, and an unknown address. The others get `scope["principal"]`, and
    `scope["authenticate"]` to ask again.
    """
    router = URLRouter([*routes, re_path(r"", cast("Any", _refuse))])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        principal = None
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
    await receive()
    await send({"type": "websocket.close", "code": 4403})
