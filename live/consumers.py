from __future__ import annotations

from abc import abstractmethod

from channels.generic.websocket import AsyncWebsocketConsumer

from live.fanout import fanout
from live.listeners import Guard, Listener
from live.sockets import Socket
from live.topics import access_topic

NOT_ALLOWED = 4403


class TopicConsumer(AsyncWebsocketConsumer):
    """Authenticate, join, relay. A subclass says who may watch (`allowed`) and what (`topics`).

    `live.middleware.stack` has left who asks in `self.scope["principal"]`. Whatever is published
    after the browser sees the socket open reaches it, so: open first, then fetch. Asked again
    whenever that person's access changes; closed when the answer is no.
    """

    # A subscription per socket on the channel layer is what live.fanout exists to avoid.
    channel_layer_alias = "none: live.fanout subscribes once for all"
    socket: Socket | None = None

    @abstractmethod
    async def allowed(self) -> bool:
        """May this principal watch? Refused sockets are closed before they open (HTTP 403)."""

    @abstractmethod
    def topics(self) -> list[str]:
        """Called after `allowed` said yes."""

    async def connect(self) -> None:
        if not await self.allowed():
            await self.close()
            return
        self.socket = Socket(self.base_send)
        guard = Guard(self._ask_again)
        self._joined: list[tuple[Listener, str]] = [(self.socket, topic) for topic in self.topics()]
        self._joined.append((guard, access_topic(self.scope["principal"].user.pk)))
        for listener, topic in self._joined:
            await fanout().join(listener, topic)
        await self.accept()
        self.socket.start()

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - channels' signature
        if self.socket is None:
            return
        for listener, topic in self._joined:
            await fanout().leave(listener, topic)
        await self.socket.stop()

    async def _ask_again(self) -> None:
        self.scope["principal"] = await self.scope["authenticate"]()
        if self.socket is not None and (self.scope["principal"] is None or not await self.allowed()):
            await self.socket.stop()
            await self.close(NOT_ALLOWED)
