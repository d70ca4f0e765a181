"""Connections from this web server to the others, over which it has them answer requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from itertools import count

from workspaces.servers.link_frames import FrameStream, LinkRefused, Payload, greet
from workspaces.servers.ring import ring
from workspaces.servers.server_registry import OtherServer

log = logging.getLogger(__name__)
CONNECT_S = 1.0
# Of bytes that the other server has not read: it is stopped, or much too slow.
MAX_UNSENT_BYTES = 64 * 2**20
REQUEST, ANSWER, NOTICE = range(3)
Failures = (OSError, asyncio.IncompleteReadError, TimeoutError, LinkRefused)


class LinkBroken(Exception):
    """The other server did not answer; it may have done what was requested."""


class Link:
    """One open connection. Requests may be answered in another order."""

    def __init__(self, stream: FrameStream) -> None:
        self._stream = stream
        self._waiting: dict[int, asyncio.Future[Payload]] = {}
        self._numbers = count()
        self.is_open = True
        self._task = asyncio.create_task(self._read())

    async def request(self, call: str, payload: Payload) -> Payload:
        """Returns the other server's answer. Raises LinkBroken."""
        if not self.is_open or self._stream.unsent_bytes > MAX_UNSENT_BYTES:
            raise LinkBroken
        number = next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            try:
                self._stream.send([REQUEST, number, call, payload])
            except ValueError as error:  # too large for a frame
                raise LinkBroken from error
            return await future
        finally:
            self._waiting.pop(number, None)

    def notify(self, call: str, payload: Payload) -> None:
        """Sends what needs no answer; drops it where the other server is behind."""
        if self.is_open and self._stream.unsent_bytes <= MAX_UNSENT_BYTES:
            self._stream.send([NOTICE, 0, call, payload])

    def close(self) -> None:
        """Ends the connection; requests that wait fail with LinkBroken."""
        if self.is_open:
            self.is_open = False
            self._stream.abort()
            self._task.cancel()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(LinkBroken())

    async def _read(self) -> None:
        try:
            while True:
                _, number, _, payload = await self._stream.receive()
                future = self._waiting.get(number)
                if future is not None and not future.done():
                    future.set_result(payload)
        except Failures as error:
            log.debug("a link ended: %r", error)
        finally:
            self.close()


class Links:
    """The connections to all other servers, opened when they are needed. Only the event loop uses them."""

    def __init__(self) -> None:
        self._open: dict[str, Link] = {}
        self._opening: dict[str, asyncio.Task[Link]] = {}
        self._complaints: dict[str, str] = {}

    def existing(self, server: str) -> Link | None:
        link = self._open.get(server)
        return link if link is not None and link.is_open else None

    async def to(self, peer: OtherServer) -> Link:
        """Returns the connection to a server. Raises LinkBroken, and has the ring avoid the server then."""
        link = self.existing(peer.id)
        if link is not None:
            return link
        task = self._opening.get(peer.id)
        if task is None:
            task = self._opening[peer.id] = asyncio.create_task(self._connect(peer))
            task.add_done_callback(lambda _: self._opening.pop(peer.id, None))
        # Many requests may wait for one attempt, and one of them that is canceled must not end it.
        return await asyncio.shield(task)

    def drop_all_but(self, servers: Iterable[str]) -> None:
        """Closes the connections to servers that do not live any more: what waits for them need not wait for
        the network to notice."""
        for server in self._open.keys() - set(servers):
            self._open.pop(server).close()

    def close(self) -> None:
        self.drop_all_but(())

    async def _connect(self, peer: OtherServer) -> Link:
        host, _, port = peer.address.rpartition(":")
        writer = None
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(host.strip("[]"), int(port or 0))
                link = Link(await greet(reader, writer, ring.own_id, peer.id))
        except (*Failures, ValueError) as error:
            if writer is not None:
                with suppress(OSError):
                    writer.transport.abort()
            ring.avoid(peer)
            self._complain(peer, error)
            raise LinkBroken from error
        self._complaints.pop(peer.id, None)
        self._open[peer.id] = link
        return link

    def _complain(self, peer: OtherServer, error: Exception) -> None:
        if self._complaints.get(peer.id) != repr(error):
            log.warning(
                "Server %s cannot be reached at %s, so this one answers in its place: %s",
                peer.name,
                peer.address or "no SERVER_ADDRESS",
                error or type(error).__name__,
            )
        self._complaints[peer.id] = repr(error)


links = Links()
