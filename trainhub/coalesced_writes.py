"""How the web server's answers leave: the head waits for the beginning of its body, and both go in one write.

Of two writes a client that acknowledges late sees the second one late, and each costs both sides a system
call."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

WORTH_JOINING = 65536
"""Bytes; to copy more costs more than a write."""


class OneWrite(HttpToolsProtocol):
    """uvicorn's own protocol on a transport that joins."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _Joining(transport, self.loop)))

    def handle_websocket_upgrade(self) -> None:
        # From here on messages leave, which are written whole.
        self.transport = cast("_Joining", self.transport).plain
        super().handle_websocket_upgrade()


class _Joining:
    """A transport that holds an answer's head back until more is written, at the longest until the loop's
    next turn."""

    def __init__(self, plain: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.plain = plain
        self._loop = loop
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def write(self, data: bytes) -> None:
        if self._held:
            if len(data) > WORTH_JOINING:
                self._flush()
            else:
                data, self._held = self._held + data, b""
        elif data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n"):
            self._held = data
            self._loop.call_soon(self._flush)
            return
        self.plain.write(data)

    def close(self) -> None:
        self._flush()
        self.plain.close()

    def _flush(self) -> None:
        if self._held:
            data, self._held = self._held, b""
            self.plain.write(data)
