"""One connection of a simulated node to the hub, for a small part of what a client's library costs: many
nodes share the cores with the hub that they measure."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

ANSWER_S = 60.0
END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True)
class Answer:
    status: int
    content: bytes


class NodeConnection:
    """Requests go one after another, and each waits for its answer. Opened by the first, and again where the
    server closed it. Raises OSError for a request without an answer within ANSWER_S."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._place = host, port
        self._head = f"Host: {host}\r\nAuthorization: Bearer {token}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def post(self, path: str, content: bytes, content_type: str) -> Answer:
        head = f"POST {path} HTTP/1.1\r\n{self._head}Content-Type: {content_type}\r\n"
        request = f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
        async with self._turn, asyncio.timeout(ANSWER_S):
            is_used_again = self._streams is not None
            try:
                try:
                    return await self._ask(request)
                except OSError:
                    # The server closes a connection that was idle, perhaps just as it is used again.
                    if not is_used_again:
                        raise
                    self.close()
                    return await self._ask(request)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
        self._streams = None

    async def _ask(self, request: bytes) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place)
        reader, writer = self._streams
        writer.write(request)
        try:
            head = (await reader.readuntil(END_OF_HEAD)).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            content = await reader.readexactly(length)
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the server closed the connection before its answer") from error
        if b"\r\nconnection: close" in head:
            self.close()
        return Answer(int(head.split(b" ", 2)[1]), content)
