"""HTTP and WebSocket connections with time limits, so that slow or silent clients cannot hold them for ever.

uvicorn itself waits without limit for the rest of a head or body, and for a client that does not read."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from trainhub.coalesced_writes import OneWrite
from trainhub.serving.limits import ConnectionLimits, address_key
from trainhub.serving.proxies import TrustedProxies
from trainhub.serving.proxy_faults import note_faults
from workspaces.authentication.external.configuration import PEER

# Bytes per second below which a client counts as stalled, in either direction.
MIN_RATE = 500
MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 256


class HeadTooLarge(Exception):
    """The request's head is larger than those of the hub's clients."""


class UnreadAnswer:
    """Aborts a connection whose client does not read what is sent to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, transport: asyncio.Transport) -> None:
        """Starts the watch. To be called when the transport's buffer is full."""
        self._timer = self._loop.call_later(
            self._seconds, self._check, transport, transport.get_write_buffer_size()
        )

    def end(self) -> None:
        """Ends the watch. To be called when the buffer has emptied, or the connection has gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self, transport: asyncio.Transport, before: int) -> None:
        if before - transport.get_write_buffer_size() < MIN_RATE * self._seconds:
            transport.abort()
        else:
            self.begin(transport)


class GuardedHttp(OneWrite):
    """An HTTP connection with time limits for heads, bodies and unread responses, and a size limit for
    heads."""

    def __init__(self, *args: Any, limits: ConnectionLimits, proxies: TrustedProxies, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = limits
        self._proxies = proxies
        self._address = ""
        self._timer: asyncio.TimerHandle | None = None
        self._unread = UnreadAnswer(self.loop, limits.timeouts.stalled)
        self._in_head = self._in_body = self._is_upgraded = self._head_too_large = self._was_paused = False
        self._head_bytes = self._body_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        self._address = "" if host in self._proxies else address_key(host)
        self._limits.opened(self)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._unread.end()
        self._limits.closed(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        """Closes the connection at once, without sending what is still buffered."""
        self.transport.abort()

    # Reading

    def data_received(self, data: bytes) -> None:
        was_in_head = self._in_head
        super().data_received(data)
        if self._is_upgraded or self.transport.is_closing():
            return
        if self._in_head or self._is_idle:
            # The chunk in which a head begins is not counted: it may also hold the end of the request before.
            self._head_bytes += len(data) if was_in_head else 0
            if self._head_bytes > MAX_HEAD_BYTES:
                self._head_too_large = True
                self.send_400_response("")
            elif self._timer is None:
                self._await_head()
        elif self._in_body and self._timer is None:
            self._await_body()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        # A head that arrives in a single chunk is only measured here.
        if size > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._head_too_large = True
            raise HeadTooLarge
        self._stop_waiting()
        self._in_body, self._body_bytes = True, 0
        if not self._address and self._proxies:
            note_faults(self.url, self.headers)
        cast("dict[str, Any]", self.scope)[PEER] = self.client[0] if self.client else ""
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)
        # Reading is paused while the application is behind; then a slow body is the hub's fault.
        self._was_paused = self._was_paused or self.flow.read_paused

    def on_message_complete(self) -> None:
        self._in_body = False
        self._stop_waiting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in_body:
            # Answered before the body was read, for example with 401: the client has shown no right to this
            # connection.
            self._limits.waiting(self, self._address)

    def handle_websocket_upgrade(self) -> None:
        self._is_upgraded = True
        self._stop_waiting()
        self._unread.end()
        # From here on `CountedWebSocket` counts this connection.
        self._limits.closed(self)
        super().handle_websocket_upgrade()

    @property
    def _is_idle(self) -> bool:
        """Whether no request is being read or answered. Data that has arrived in this state consists of empty
        lines only."""
        return not self._in_body and (self.cycle is None or self.cycle.response_complete)

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self._limits.timeouts.head, self._give_up)
        self._limits.waiting(self, self._address)

    def _await_body(self) -> None:
        self._body_bytes, self._was_paused = 0, self.flow.read_paused
        self._timer = self.loop.call_later(self._limits.timeouts.body, self._check_body)
        # Whoever sends no credentials counts as unfinished while sending a body, too.
        if not any(name in (b"authorization", b"cookie") for name, _ in self.headers):
            self._limits.waiting(self, self._address)

    def _check_body(self) -> None:
        """Aborts a client that sends too slowly, unless the hub itself has not read, or has not requested the
        body yet."""
        hub_was_slow = self._was_paused or (
            not self.cycle.response_complete and self.cycle.waiting_for_100_continue
        )
        if not hub_was_slow and self._body_bytes < MIN_RATE * self._limits.timeouts.body:
            self._give_up()
        else:
            self._await_body()

    def _give_up(self) -> None:
        self._timer = None
        self.abort()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._limits.finished(self)

    # Writing

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.begin(self.transport)

    def resume_writing(self) -> None:
        self._unread.end()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        if not self._head_too_large:
            super().send_400_response(msg)
            return
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        text = f"A request's head may have {MAX_HEAD_BYTES} bytes and {MAX_HEADERS} fields.\n".encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain\r\ncontent-length: "
            f"{len(text)}\r\n"
        )
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + text)
        self.transport.close()


class CountedWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket connection that counts as open, and is aborted if its client does not read for long."""

    def __init__(self, *args: Any, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = limits
        self._unread = UnreadAnswer(self.loop, limits.timeouts.stalled)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._limits.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread.end()
        self._limits.closed(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.begin(self.transport)

    def resume_writing(self) -> None:
        self._unread.end()
        super().resume_writing()
