from __future__ import annotations

from abc import abstractmethod

from channels.generic.websocket import AsyncWebsocketConsumer

from live.fanout import fanout
from live.sockets import Socket


class TopicConsumer(AsyncWebsocketConsumer):
    """Authenticate, join, relay. A subclass says who may watch (`allowed`) and what (`topics`).

    `live.middleware.stack` has left who asks in `self.scope["principal"]`. Whatever is published
    after the browser sees the socket open reaches it, so: open first, then fetch.
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
        for topic in self.topics():
            await fanout().join(self.socket, topic)
        await self.accept()
        self.socket.start()

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - channels' signature
        if self.socket is None:
            return
        for topic in self.topics():
            await fanout().leave(self.socket, topic)
        await self.socket.stop()
