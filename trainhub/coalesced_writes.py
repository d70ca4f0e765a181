"""Sends the head of a response together with the beginning of its body, in one write.

With two writes a client that delays its acknowledgements receives the second one late, and each write costs
both sides a system call."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# In bytes. Copying more costs more than a second write.
WORTH_JOINING = 65536


class OneWrite(HttpToolsProtocol):
    """uvicorn's HTTP protocol, on a transport that joins the head of a response with the beginning of its
    body."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _Joining(transport, self.loop)))

    def handle_websocket_upgrade(self) -> None:
        # WebSocket messages are written whole already, and the other protocol would not flush what `_Joining`
        # holds back.
        self.transport = cast("_Joining", self.transport).plain
        super().handle_websocket_upgrade()


class _Joining:
    """A transport that holds the head of a response back until more is written, at most until the loop's next
    iteration."""

    def __init__(self, plain: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.plain = plain
        self._loop = loop
        self._buffer = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def write(self, data: bytes) -> None:
        if self._buffer:
            if len(data) > WORTH_JOINING:
                self._flush()
            else:
                data, self._buffer = self._buffer + data, b""
        # uvicorn writes a response's head by itself, ended by an empty line. Everything else passes at once.
        elif data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n"):
            self._buffer = data
            self._loop.call_soon(self._flush)
            return
        self.plain.write(data)

    def close(self) -> None:
        self._flush()
        self.plain.close()

    def _flush(self) -> None:
        if self._buffer:
            data, self._buffer = self._buffer, b""
            self.plain.write(data)
