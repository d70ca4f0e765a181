"""Writes request bodies to files: collects pieces of some MiB and writes and hashes each in a thread while
the next one arrives.

An upload needs the memory of two pieces: the server stops reading when the second is full before the first is
written.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

import anyio.to_thread
from django.conf import settings
from starlette.requests import ClientDisconnect, Request

from tracking.mlflow.protocol.errors import INVALID, MlflowError
from workspaces.stored_files.blob_writer import BlobWriter
from workspaces.stored_files.blobs import DISK_FULL

PIECE_BYTES = 4 * 1024 * 1024
EXHAUSTED = "RESOURCE_EXHAUSTED"
Write = Callable[[bytes], None]
Result = TypeVar("Result")


class StoredBlob(NamedTuple):
    sha256: str
    size_bytes: int


async def store_body(request: Request) -> StoredBlob:
    """Stores the body as a blob and returns it. Raises MlflowError, and stores nothing, if the body is cut
    off or too large, or if the disk is full."""
    check_size(request, settings.MAX_UPLOAD_BYTES)
    # Not a `with` block, because opening and closing use the disk and must run in threads.
    writer = await anyio.to_thread.run_sync(_open_writer)
    try:
        await write_body(request, writer.write, settings.MAX_UPLOAD_BYTES)
        sha256 = await anyio.to_thread.run_sync(with_disk_errors, writer.finish)
        return StoredBlob(sha256, writer.size)
    finally:
        await anyio.to_thread.run_sync(writer.__exit__, None, None, None)


async def write_body(request: Request, write: Write, max_bytes: int) -> int:
    """Passes the body to `write` piece by piece, in threads, and returns its size in bytes.

    No write is running when it returns or raises MlflowError.
    """
    size = 0
    writing: asyncio.Task[None] | None = None
    try:
        async for piece in _pieces(request):
            size += sum(map(len, piece))
            if size > max_bytes:
                raise too_large_error(max_bytes)
            # One write at a time, because the hash depends on the order; the next piece arrives meanwhile.
            if writing is not None:
                await writing
            writing = asyncio.create_task(_write(write, piece))
        if writing is not None:
            await writing
    except ClientDisconnect as error:
        # Not an error of the hub, and no client is left to read this.
        raise MlflowError(INVALID, "The upload was cut off; nothing was stored.") from error
    finally:
        # A thread cannot be cancelled: it must end before the caller closes the file that it writes to.
        if writing is not None and not writing.done():
            with suppress(OSError, MlflowError):
                await writing
    return size


def check_size(request: Request, max_bytes: int) -> None:
    """Checks Content-Length before a byte is read. Raises MlflowError if it exceeds the limit or the free
    disk space."""
    # A chunked request has no length; `write_body` checks its size on arrival.
    length = declared_size(request)
    if length is None:
        return
    if length > max_bytes:
        raise too_large_error(max_bytes)
    if length > shutil.disk_usage(settings.DATA_DIR).free:
        raise disk_full_error()


def declared_size(request: Request) -> int | None:
    """Returns Content-Length, or None for a chunked request."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else None


def too_large_error(max_bytes: int) -> MlflowError:
    return MlflowError(
        INVALID,
        f"Artifact size is too large: at most {max_bytes} bytes are accepted (MAX_UPLOAD_BYTES).",
        status=413,
    )


def disk_full_error() -> MlflowError:
    sentence = (
        "The hub's disk is full; nothing of this file was stored. The operator must free space below "
        "DATA_DIR."
    )
    return MlflowError(EXHAUSTED, sentence, status=507)


def _open_writer() -> BlobWriter:
    return with_disk_errors(BlobWriter)


def with_disk_errors(function: Callable[[], Result]) -> Result:
    """Calls `function`. Raises MlflowError if the disk is full."""
    try:
        return function()
    except OSError as error:
        if error.errno in DISK_FULL:
            raise disk_full_error() from error
        raise


async def _write(write: Write, piece: list[bytes]) -> None:
    def write_all() -> None:
        for chunk in piece:
            write(chunk)

    await anyio.to_thread.run_sync(with_disk_errors, write_all)


async def _pieces(request: Request) -> AsyncIterator[list[bytes]]:
    """Yields the chunks of each piece; joining them would copy every byte."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        chunks.append(chunk)
        size += len(chunk)
        if size >= PIECE_BYTES:
            yield chunks
            chunks, size = [], 0
    if size:
        yield chunks
