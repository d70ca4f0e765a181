"""Sends a file of a datastore over HTTP while it is read from the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import anyio
import anyio.to_thread
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from datastores.models import Datastore
from datastores.object_reads.read_slots import MAX_READS, TooManyReads, hold_read_slot
from datastores.object_reads.store_object import StoreObject
from datastores.object_reads.store_stream import StoreStream
from datastores.store_process import StoreProcessFailed
from datastores.store_secret import store_secret
from workspaces.http.problems import Problem
from workspaces.http.threads import in_thread
from workspaces.models import User
from workspaces.secrets import uses
from workspaces.secrets.errors import SecretsUnavailable
from workspaces.stored_files.conditional_response import OCTETS, ConditionalResponse, refusal
from workspaces.stored_files.piece_sending import send_whole
from workspaces.stored_files.preconditions import Span

log = logging.getLogger(__name__)
# A client that does not take a piece of the file within so long is given up: others wait for its place.
MAX_SEND_S = 120.0
UNREADABLE = "Not readable by the hub"
OWN_FAULT = "The hub itself failed to read this file; an operator finds the reason in its log."
# The threads of all other requests stay free of those that wait for a store.
_reading = anyio.CapacityLimiter(MAX_READS)


class StoreObjectResponse(ConditionalResponse):
    """A download of one file of a datastore, whole or one range of it. The caller has checked before that the
    client may have it.

    The end of a whole file is sent only if its SHA-256 is right, otherwise the connection ends early. Of
    several ranges the client gets the whole file. `reader`: who downloads it, for the list of the uses of the
    secret. Raises Problem, 409, if the hub cannot read the file."""

    def __init__(
        self,
        item: StoreObject,
        *,
        filename: str,
        reader: User | None,
        media_type: str = OCTETS,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if item.datastore is None or item.refusal:
            raise Problem(409, UNREADABLE, item.refusal)
        self._item, self._datastore, self._reader = item, item.datastore, reader
        headers = {**(headers or {}), "X-Content-SHA256": item.sha256}
        super().__init__(f'"{item.sha256}"', filename, media_type, item.modified_at, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = self._item.size_bytes
        answer, spans = self.answer_early(scope, size)
        if answer is None:
            span = (0, size)
            self.headers["content-length"] = str(size)
            if spans and len(spans) == 1:
                span, self.status_code = spans[0], 206
                self.set_span(span, size)
            answer = _ObjectSending(self, self._item, self._datastore, span, self._reader)
        await answer(scope, receive, send)


class _ObjectSending(StreamingResponse):
    def __init__(
        self,
        head: ConditionalResponse,
        item: StoreObject,
        datastore: Datastore,
        span: Span,
        reader: User | None,
    ) -> None:
        self.status_code, self.raw_headers, self.background = head.status_code, head.raw_headers, None
        self._item, self._datastore, self._span, self._reader = item, datastore, span, reader
        self._has_started = False

    async def stream_response(self, send: Send) -> None:
        try:
            async with hold_read_slot(self._datastore.workspace_id):
                await self._send_pieces(send)
        except TooManyReads as error:
            busy = refusal(503, "Not yet", str(error), {"Retry-After": "5"})
            await send_whole(send, busy)
        except SecretsUnavailable as error:
            sentence = f"{error.message[:1].upper()}{error.message[1:]}."
            await send_whole(send, refusal(409, UNREADABLE, sentence))
        except StoreProcessFailed as error:
            sentence = str(error) or OWN_FAULT
            log.warning("A download from datastore %s ended: %s", self._datastore, sentence)
            if self._has_started:
                # There is no other way to tell the client: the answer ends before its Content-Length.
                raise
            await send_whole(send, refusal(502, "Not read", sentence))

    async def _send_pieces(self, send: Send) -> None:
        datastore = self._datastore
        secret = await in_thread(store_secret, datastore, uses.DATASTORE, datastore.name, self._reader)
        stream = StoreStream(datastore.store, self._item, self._span, secret)
        try:
            await anyio.to_thread.run_sync(stream.start, limiter=_reading)
            while (piece := await anyio.to_thread.run_sync(stream.read_piece, limiter=_reading)) != b"":
                if piece is not None:
                    await self._send(send, piece)
            await self._send(send, b"", is_last=True)
        finally:
            # Also if the client has gone away: its process must not stay.
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(stream.close, limiter=_reading)

    async def _send(self, send: Send, piece: bytes, *, is_last: bool = False) -> None:
        if not self._has_started:
            # Not earlier: while nothing has left, the answer can still be an error.
            self._has_started = True
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
        async with asyncio.timeout(MAX_SEND_S):
            await send({"type": "http.response.body", "body": piece, "more_body": not is_last})
