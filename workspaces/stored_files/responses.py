"""Sends a stored file over HTTP: whole or in ranges, with conditions, and never with other bytes than its
hash says."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import anyio
import anyio.to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from workspaces.object_store.errors import StoreUnavailable
from workspaces.stored_files import blob_cache, blobs, object_responses, verification
from workspaces.stored_files.conditional_response import OCTETS, ConditionalResponse, refusal
from workspaces.stored_files.piece_sending import Pieces, PieceSending
from workspaces.stored_files.preconditions import Span

PIECE_BYTES = 2 * 1024 * 1024
# Threads that may read, or wait for, large files that are not verified yet: the threads of all other requests
# stay free.
_verifying = anyio.CapacityLimiter(4)


class StoredFileResponse(ConditionalResponse):
    """A download of one file. The caller has checked before that the client may have it.

    With `sha256` the file is a blob. A blob that this process has not verified since it last changed is
    verified while it is sent: its last bytes are sent only if the hash of all is right, otherwise the
    connection ends early. Before a range of it is sent, it is read whole once. Of a file without `sha256`,
    such as a log that still grows, the first `size` bytes are sent."""

    def __init__(
        self,
        path: Path,
        *,
        etag: str = "",
        sha256: str = "",
        size: int | None = None,
        filename: str = "",
        media_type: str = OCTETS,
        modified_at: datetime | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._path, self._sha256, self._size = path, sha256, size
        super().__init__(etag or f'"{sha256}"', filename, media_type, modified_at, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._sha256 and (redirect := await object_responses.redirect_answer(scope, self._sha256)):
            await redirect(scope, receive, send)
            return
        try:
            descriptor, facts = await anyio.to_thread.run_sync(_opened, self._path, self._sha256)
        except FileNotFoundError:
            await self._send_object(scope, receive, send)
            return
        try:
            # One descriptor for all of the answer: a file that is replaced meanwhile cannot mix into it.
            answer = await self._answer(scope, descriptor, facts)
            await answer(scope, receive, send)
        finally:
            os.close(descriptor)

    async def _send_object(self, scope: Scope, receive: Receive, send: Send) -> None:
        row = await object_responses.stored_row(self._sha256) if self._sha256 else None
        if row is None:
            answer: Response | None = refusal(404, "Not found", "The file was deleted a moment ago.")
        else:
            answer = await object_responses.object_answer(scope, self, row)
        if answer is None:
            try:
                await object_responses.fetch_copy(self._sha256)
            except StoreUnavailable as error:
                answer = object_responses.away(error)
        await (answer or self)(scope, receive, send)

    async def _answer(self, scope: Scope, descriptor: int, facts: os.stat_result) -> Response:
        size = facts.st_size if self._size is None else self._size
        early, spans = self.answer_early(scope, size)
        if early is not None:
            return early
        is_verified = not self._sha256 or verification.is_verified(self._sha256, facts)
        if spans is None:
            self.headers["content-length"] = str(size)
            expected = None if is_verified else (self._sha256, facts)
            return self._sending(_FileReading(descriptor, [(0, size)], expected))
        if not is_verified:
            try:
                await anyio.to_thread.run_sync(
                    blobs.verify_open, descriptor, self._sha256, limiter=_verifying
                )
            except blobs.DamagedBlob:
                return self._damage_refusal()
        self.status_code = 206
        return self._sending(_FileReading(descriptor, self._parts(spans, size), None))

    def _sending(self, reading: _FileReading) -> Response:
        return PieceSending(self, reading.pieces(), self._damage_refusal)

    def _damage_refusal(self, _: Exception | None = None) -> Response:
        return refusal(500, "Damaged", f"The bytes of this file {blobs.absence(self._sha256)}.")

    def _parts(self, spans: list[Span], size: int) -> list[bytes | Span]:
        """Returns what is sent for these ranges, in order: literal bytes, and ranges of the file. Sets the
        headers for it."""
        if len(spans) == 1:
            self.set_span(spans[0], size)
            return [spans[0]]
        # Random, so that the content cannot contain it.
        boundary, kind = secrets.token_hex(16), self.headers["content-type"]
        parts: list[bytes | Span] = []
        for number, (start, end) in enumerate(spans):
            lines = [
                f"--{boundary}",
                f"Content-Type: {kind}",
                f"Content-Range: bytes {start}-{end - 1}/{size}",
                "",
                "",
            ]
            parts += [
                ("\r\n" if number else "").encode() + "\r\n".join(lines).encode("latin-1"),
                (start, end),
            ]
        parts.append(f"\r\n--{boundary}--\r\n".encode())
        self.headers["content-type"] = f"multipart/byteranges; boundary={boundary}"
        total = sum(len(part) if isinstance(part, bytes) else part[1] - part[0] for part in parts)
        self.headers["content-length"] = str(total)
        return parts


class _FileReading:
    """Reads parts of an open file. `expected`: the SHA-256 that the parts together must have, and the state
    of the file when it was opened."""

    def __init__(
        self, descriptor: int, parts: list[bytes | Span], expected: tuple[str, os.stat_result] | None
    ) -> None:
        self._descriptor, self._parts, self._expected = descriptor, parts, expected
        self._hash = hashlib.sha256()

    def pieces(self) -> Pieces:
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
                continue
            start, end = part
            if start == end:
                self._check()  # an empty file
            while start < end:
                piece = os.pread(self._descriptor, min(PIECE_BYTES, end - start), start)
                start += len(piece)
                if self._expected:
                    self._hash.update(piece)
                if start == end or not piece:
                    self._check()
                if not piece:
                    raise OSError("a stored file became shorter while it was sent")
                yield piece

    def _check(self) -> None:
        """Raises DamagedBlob if the content of the file is not that of its name. Called before the last piece
        is sent."""
        if not self._expected:
            return
        sha256, facts = self._expected
        if self._hash.hexdigest() == sha256:
            verification.remember(sha256, facts)
        else:
            blobs.verify_open(self._descriptor, sha256)
            raise blobs.DamagedBlob(f"the stored file {sha256} was read with other bytes than before")


def _opened(path: Path, sha256: str) -> tuple[int, os.stat_result]:
    if sha256:
        blob_cache.is_local(sha256)
    # O_NOFOLLOW: nothing in the data folder is a link, so one that appears there is an attack.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    return descriptor, os.fstat(descriptor)
