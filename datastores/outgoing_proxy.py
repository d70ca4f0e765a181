"""A proxy for one process of the hub, which connects only to addresses that the hub may reach.

The library that reads stores looks up names and follows redirects by itself: only a proxy sees where it
really goes. It connects to the very address that was checked."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from workspaces.notifications.addresses import may_reach

log = logging.getLogger(__name__)
MAX_HEAD_BYTES = 64 * 1024
PIECE_BYTES = 64 * 1024
CONNECT_S = 15.0
HEAD_S = 30.0
HTTP, HTTPS = 80, 443
END_OF_HEAD = b"\r\n\r\n"
# One side is gone, or does not speak the protocol: the library asks again, and reports it.
ENDED = (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
# Each connection carries one request, because the next one may be for another host.
HOP_HEADERS = (b"connection:", b"proxy-connection:", b"keep-alive:")


class _BadRequest(Exception):
    """The request cannot be carried out. `status`: the line of the answer."""

    def __init__(self, status: bytes) -> None:
        super().__init__()
        self.status = status


class OutgoingProxy:
    """Serves on a port of the loopback interface while it is entered. `refused_host`: the last host at an
    address to which the hub does not connect; `trouble`: why the last host could not be reached, as a phrase
    with the remedy; "" if there was none."""

    def __init__(self) -> None:
        self.refused_host = self.trouble = ""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="outgoing-proxy", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        starting = asyncio.start_server(self._handle, sock=self._socket, limit=MAX_HEAD_BYTES)
        self._server = self._loop.run_until_complete(starting)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._server.close()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._forward(reader, writer)
        except _BadRequest as refusal:
            writer.write(b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % refusal.status)
            with contextlib.suppress(OSError):
                await writer.drain()
        except ENDED as error:
            log.debug("A connection of the outgoing proxy ended: %r", error)
        except asyncio.CancelledError:
            # Only the end of the proxy cancels it; asyncio would log that as an error.
            log.debug("A connection ended with the outgoing proxy")
        finally:
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(reader.readuntil(END_OF_HEAD), HEAD_S)
        line, _, headers = head.partition(b"\r\n")
        try:
            method, target, version = line.decode("ascii").split(" ")
            is_tunnel = method == "CONNECT"
            parts = urlsplit(f"//{target}" if is_tunnel else target)
            host, port = parts.hostname or "", parts.port or (HTTPS if is_tunnel else HTTP)
        except ValueError as error:
            raise _BadRequest(b"400 Bad Request") from error
        there, to_store = await self._connect(host, port)
        if is_tunnel:
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            to_store.write(f"{method} {path} {version}\r\n".encode() + _closing(headers))
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, to_store))
                both.create_task(_answer(there, writer, is_tunnel=is_tunnel))
        except* ENDED as group:
            log.debug("A connection of the outgoing proxy ended: %r", group.exceptions)
        finally:
            to_store.close()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to the first address of the host at which that succeeds. Raises _BadRequest."""
        loop = asyncio.get_running_loop()
        try:
            infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            self.trouble = f"the hub knows no address of {host}; check the name, and the hub's name server"
            raise _BadRequest(b"502 Unknown host") from error
        addresses = [str(info[4][0]) for info in infos]
        if not all(may_reach(address, host, port, ()) for address in addresses):
            self.refused_host = host
            raise _BadRequest(b"403 Forbidden")
        for address in addresses:
            with contextlib.suppress(OSError, TimeoutError):
                pair = await asyncio.wait_for(asyncio.open_connection(address, port), CONNECT_S)
                self.trouble = ""
                return pair
        self.trouble = f"{host} takes no connection at port {port}; check its address, and whether it runs"
        raise _BadRequest(b"502 Not reached")


def _closing(headers: bytes) -> bytes:
    """Returns the headers of a request or answer, up to the empty line, so that the connection ends with
    it."""
    lines = [line for line in headers.split(b"\r\n") if line and not line.lower().startswith(HOP_HEADERS)]
    return b"\r\n".join((*lines, b"Connection: close")) + END_OF_HEAD


async def _answer(there: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_tunnel: bool) -> None:
    if not is_tunnel:
        head = await there.readuntil(END_OF_HEAD)
        status, _, headers = head.partition(b"\r\n")
        writer.write(status + b"\r\n" + _closing(headers))
    await _copy(there, writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copies until the reader's side ends, and says so to the other one."""
    while piece := await reader.read(PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
