"""A browser's end of a socket, in process: the real application and layer, no network (channels.testing wants
daphne)."""

from __future__ import annotations

import json
from typing import Any

from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.urls import path
from starlette.types import ASGIApp

from live.consumers import TopicConsumer
from live.messages import EventAdded
from live.middleware import stack
from live.topics import run_topic
from workspaces.http.scopes import principal_of_scope

ORIGIN = (b"origin", b"http://hub.example:8000")
HOST = (b"host", b"hub.example:8000")


class Watcher:
    def __init__(self, app: Any, path: str, headers: list[tuple[bytes, bytes]], query: str = "") -> None:
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": query.encode(),
            "headers": headers,
            "subprotocols": [],
        }
        self._far_end: Any = ApplicationCommunicator(app, scope)  # type: ignore[no-untyped-call]

    async def opens(self) -> bool:
        """Whether the handshake is accepted; a refusal comes before it."""
        await self._far_end.send_input({"type": "websocket.connect"})
        return bool((await self._far_end.receive_output(5))["type"] == "websocket.accept")

    async def hears(self) -> Any:
        message = await self._far_end.receive_output(5)
        assert message["type"] == "websocket.send", message
        return json.loads(message["text"])

    async def hears_nothing(self) -> bool:
        return bool(await self._far_end.receive_nothing(0.2))

    async def is_closed_with(self) -> int:
        """The code with which the hub closes it; the browser then confirms."""
        message = await self._far_end.receive_output(5)
        assert message["type"] == "websocket.close", message
        await self.closes()
        return int(message["code"])

    async def closes(self) -> None:
        await self._far_end.send_input({"type": "websocket.disconnect", "code": 1001})
        await self._far_end.wait(5)


class WatchConsumer(TopicConsumer):
    """A run is watched by whoever got past the door, except the run `secret`."""

    async def allowed(self) -> bool:
        return self.run != "secret"

    def topics(self) -> list[str]:
        return [run_topic(self.run)]

    @property
    def run(self) -> str:
        return str(self.scope["url_route"]["kwargs"]["run"])


def application() -> ASGIApp:
    return stack([path("ws/runs/<run>/", WatchConsumer.as_asgi())], principal_of_scope)


def event(run: str) -> EventAdded:
    return EventAdded(type="event.added", run=run)


def with_token(token: str) -> list[tuple[bytes, bytes]]:
    return [HOST, (b"authorization", f"Bearer {token}".encode())]


def with_session(key: str, *headers: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return [HOST, (b"cookie", f"theme=dark; {settings.SESSION_COOKIE_NAME}={key}".encode()), *headers]


def unopened(run: str, headers: list[tuple[bytes, bytes]], query: str = "") -> Watcher:
    return Watcher(application(), f"/ws/runs/{run}/", headers, query)


async def opened(run: str, headers: list[tuple[bytes, bytes]]) -> Watcher:
    made = unopened(run, headers)
    assert await made.opens()
    return made
