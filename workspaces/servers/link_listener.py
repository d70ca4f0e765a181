"""Answers the connections of the other web servers at SERVER_ADDRESS."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from workspaces.servers.link_frames import FrameStream, LinkRefused, Payload, answer_greeting
from workspaces.servers.links import ANSWER, REQUEST, Failures
from workspaces.servers.ring import ring

log = logging.getLogger(__name__)
GREETING_S = 5.0
MAX_UNANSWERED = 1000
Answerer = Callable[[Payload], Awaitable[Payload]]
# The first argument of both: the id of the server at the other end.
NoticeHandler = Callable[[str, Payload], None]
EndHandler = Callable[[str], None]


class LinkListener:
    """What this server does for the others. `answerers`: by the name of the call; `notices` need no answer;
    `on_end` is called when a server's connection ends."""

    def __init__(
        self,
        own_id: str,
        answerers: dict[str, Answerer],
        notices: dict[str, NoticeHandler],
        on_end: EndHandler,
    ) -> None:
        self._own_id = own_id
        self._answerers, self._notices, self._on_end = answerers, notices, on_end
        self._streams: dict[FrameStream, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self, host: str, port: int) -> AsyncIterator[None]:
        """Listens for the time of the block. Raises OSError where that is impossible."""
        server = await asyncio.start_server(self._serve, host or None, port)
        try:
            yield
        finally:
            server.close()
            for stream in list(self._streams):
                stream.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(GREETING_S):
                server, stream = await answer_greeting(reader, writer, self._own_id)
        except Failures as error:
            log.warning("A connection to SERVER_ADDRESS was refused: %s", error or type(error).__name__)
            writer.transport.abort()
            return
        self._streams[stream] = server
        try:
            while True:
                kind, number, call, payload = await stream.receive()
                if kind == REQUEST:
                    self._start(stream, number, call, payload)
                elif call in self._notices:  # a newer version may send others
                    self._notices[call](server, payload)
        except Failures as error:
            if isinstance(error, LinkRefused):
                log.warning("A connection of another server was ended: %s", error)
        finally:
            del self._streams[stream]
            # It may have connected anew before the end of this connection was noticed.
            if server not in self._streams.values():
                self._on_end(server)
            stream.abort()

    def _start(self, stream: FrameStream, number: int, call: str, payload: Payload) -> None:
        # A server that others count as dead: they have taken its nodes over, and what waited in its sockets
        # meanwhile is old.
        if not ring.is_current or len(self._tasks) > MAX_UNANSWERED:
            stream.send([ANSWER, number, call, None])
            return
        task = asyncio.create_task(self._answer(stream, number, call, payload))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, stream: FrameStream, number: int, call: str, payload: Payload) -> None:
        try:
            answer = await self._answerers[call](payload)
        except Exception:
            log.exception("A request of another server failed: %s", call)
            answer = None
        try:
            stream.send([ANSWER, number, call, answer])
        except ValueError as error:
            log.error("An answer to another server is too large (%s): %s", call, error)
            stream.send([ANSWER, number, call, None])
