"""Sends what an iterator yields; the next piece is read while the one before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator

import anyio
import anyio.to_thread
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from workspaces.object_store.errors import StoreUnavailable
from workspaces.stored_files.blobs import DamagedBlob

Pieces = Generator[bytes, None, None]


class PieceSending(StreamingResponse):
    """`head`: status and headers. `pieces` is read in threads of `limiter` and closed at the end. `refuse`
    returns the answer to a DamagedBlob or StoreUnavailable of the pieces, which is sent if nothing has left
    yet; otherwise the connection ends early."""

    def __init__(
        self,
        head: Response,
        pieces: Pieces,
        refuse: Callable[[Exception], Response],
        limiter: anyio.CapacityLimiter | None = None,
    ) -> None:
        self.status_code, self.raw_headers, self.background = head.status_code, head.raw_headers, None
        self._pieces, self._refuse, self._limiter = pieces, refuse, limiter

    async def stream_response(self, send: Send) -> None:
        reading = asyncio.create_task(self._next())
        has_started = False
        try:
            while (piece := await reading) is not None:
                if not has_started:
                    # Not earlier: while nothing of a damaged file has left, the answer can still be an error.
                    await self._begin(send)
                    has_started = True
                reading = asyncio.create_task(self._next())
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            if not has_started:
                await self._begin(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (DamagedBlob, StoreUnavailable) as error:
            if has_started:
                # There is no other way to tell the client: the answer ends before its Content-Length.
                raise
            await send_whole(send, self._refuse(error))
        finally:
            # What the iterator holds is closed next: no thread may still read from it.
            with anyio.CancelScope(shield=True):
                await asyncio.wait([reading])
                await anyio.to_thread.run_sync(self._pieces.close, limiter=self._limiter)

    async def _begin(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})

    async def _next(self) -> bytes | None:
        return await anyio.to_thread.run_sync(next, self._pieces, None, limiter=self._limiter)


async def send_whole(send: Send, answer: Response) -> None:
    """Sends an answer whose body is complete."""
    start = {"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers}
    await send(start)
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})
