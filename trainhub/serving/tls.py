"""TLS connections, which count as unfinished from the moment at which they are accepted.

The server of an event loop passes a connection to its protocol only after the handshake, so nothing could
count or end it before."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any

import uvloop

from trainhub.serving.limits import ConnectionLimits, address_key
from trainhub.serving.proxies import TrustedProxies

log = logging.getLogger(__name__)
MAX_ACCEPTED_AT_ONCE = 64
# After a connection could not be accepted, usually because too many files are open.
PAUSE_SECONDS = 0.1
MakeProtocol = Callable[[], asyncio.Protocol]


class GuardedLoop(uvloop.Loop):
    """An event loop whose TLS servers limit unfinished handshakes."""

    def __init__(self, limits: ConnectionLimits, proxies: TrustedProxies) -> None:
        super().__init__()
        self.limits = limits
        self.proxies = proxies

    async def create_server(  # type: ignore[override]  # no more than what uvicorn gives
        self, protocol_factory: MakeProtocol, *args: Any, ssl: Any = None, backlog: int = 100, **options: Any
    ) -> object:
        if ssl is None:
            return await super().create_server(protocol_factory, *args, backlog=backlog, **options)
        bound = await super().create_server(protocol_factory, *args, start_serving=False, **options)
        return TlsServer(self, bound, protocol_factory, ssl, backlog)


class TlsServer:
    """Accepts TLS connections at the sockets that `bound` has bound."""

    def __init__(
        self,
        loop: GuardedLoop,
        bound: Any,
        make_protocol: MakeProtocol,
        context: ssl.SSLContext,
        backlog: int,
    ) -> None:
        self.loop = loop
        self.make_protocol = make_protocol
        self.context = context
        self._bound = bound
        self._listeners = [item.dup() for item in bound.sockets]
        for listener in self._listeners:
            listener.listen(backlog)
            listener.setblocking(False)
            loop.add_reader(listener, self._accept, listener)

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        return tuple(self._listeners)

    def close(self) -> None:
        for listener in self._listeners:
            self.loop.remove_reader(listener)
            listener.close()
        self._listeners = []
        self._bound.close()

    async def wait_closed(self) -> None:
        await self._bound.wait_closed()

    def _accept(self, listener: socket.socket) -> None:
        # Not until the queue is empty: the connections that are open need their turn, too.
        for _ in range(MAX_ACCEPTED_AT_ONCE):
            try:
                accepted, peer = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("No connection can be accepted: %s", error)
                # Otherwise the loop would call this again at once, and occupy a processor until a descriptor
                # is free.
                self.loop.remove_reader(listener)
                self.loop.call_later(PAUSE_SECONDS, self._resume, listener)
                return
            accepted.setblocking(False)
            Handshake(self, accepted, str(peer[0]))

    def _resume(self, listener: socket.socket) -> None:
        # `close` may have been called during the pause.
        if listener in self._listeners:
            self.loop.add_reader(listener, self._accept, listener)


class Handshake:
    """One accepted connection until its handshake ends. From then on its HTTP protocol is responsible for
    it."""

    def __init__(self, server: TlsServer, accepted: socket.socket, host: str) -> None:
        self._server = server
        self._accepted = accepted
        limits = server.loop.limits
        self._task = server.loop.create_task(self._shake_hands())
        self._task.add_done_callback(self._ended)
        limits.opened(self)
        limits.waiting(self, "" if host in server.loop.proxies else address_key(host))

    def abort(self) -> None:
        self._task.cancel()

    async def _shake_hands(self) -> None:
        server = self._server
        await server.loop.connect_accepted_socket(
            server.make_protocol,
            self._accepted,
            ssl=server.context,
            ssl_handshake_timeout=server.loop.limits.timeouts.handshake,
        )

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._server.loop.limits.closed(self)
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            self._accepted.close()
        if error is not None and not isinstance(error, OSError):
            # OSError means no TLS, an old version, or a client that has gone: nothing of ours went wrong.
            log.error("A connection could not be taken up", exc_info=error)
