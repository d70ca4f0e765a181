from __future__ import annotations

from abc import abstractmethod

from channels.generic.websocket import AsyncWebsocketConsumer

from live.fanout import fanout
from live.listeners import Guard, Listener
from live.sockets import Socket
from live.topics import access_topic

NOT_ALLOWED = 4403


class TopicConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """A WebSocket that relays the messages of topics. A subclass says who may watch (`allowed`) and what
    (`topics`).

    `live.middleware.stack` has put the authenticated principal into `self.scope["principal"]`. Every message
    that is published after the browser sees the socket open reaches it, so a page opens its socket first and
    fetches afterwards. `allowed` is called again whenever the person's access changes; the socket is closed
    when it returns False.
    """

    # A subscription per socket on the channel layer is what live.fanout exists to avoid.
    channel_layer_alias = "none: live.fanout subscribes once for all"
    socket: Socket | None = None

    @abstractmethod
    async def allowed(self) -> bool:
        """Returns whether this principal may watch. A refused socket is closed before it opens (HTTP 403)."""

    @abstractmethod
    def topics(self) -> list[str]:
        """Returns the topics to join. It is called after `allowed` has returned True."""

    async def connect(self) -> None:
        if not await self.allowed():
            await self.close()
            return
        self.socket = Socket(self.base_send)
        guard = Guard(self._check_access)
        self._joined: list[tuple[Listener, str]] = [(self.socket, topic) for topic in self.topics()]
        self._joined.append((guard, access_topic(self.scope["principal"].user.pk)))
        # Accepted only after the joins: a page that fetches once its socket is open would otherwise miss what
        # is published in between. Until `start` the socket queues its messages.
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

    async def _check_access(self) -> None:
        self.scope["principal"] = await self.scope["authenticate"]()
        if self.socket is not None and (self.scope["principal"] is None or not await self.allowed()):
            await self.socket.stop()
            await self.close(NOT_ALLOWED)
