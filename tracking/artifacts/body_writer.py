"""A request's body into a file: gathered into pieces of some MiB, each hashed and written by a thread while
the next comes.

Memory stays at two pieces an upload: while one is written, the server stops reading once the next is full.
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
from workspaces.stored_files.blobs import DISK_FULL, BlobWriter

PIECE_BYTES = 4 * 1024 * 1024
EXHAUSTED = "RESOURCE_EXHAUSTED"
Write = Callable[[bytes], None]
T = TypeVar("T")


class Received(NamedTuple):
    sha256: str
    size_bytes: int


async def into_blob(request: Request) -> Received:
    """The whole body as a blob. Cut off, too large, or of a full disk: nothing remains. Raises
    MlflowError."""
    check_size(request, settings.MAX_UPLOAD_BYTES)
    writer = await anyio.to_thread.run_sync(_opened)
    try:
        await pour(request, writer.write, settings.MAX_UPLOAD_BYTES)
        sha256 = await anyio.to_thread.run_sync(guarded, writer.finish)
        return Received(sha256, writer.size)
    finally:
        await anyio.to_thread.run_sync(writer.__exit__, None, None, None)


async def pour(request: Request, write: Write, most: int) -> int:
    """Hand the body to `write` piece by piece, in threads; how many bytes it had. No write is under way when
    it returns."""
    size = 0
    writing: asyncio.Task[None] | None = None
    try:
        async for piece in _pieces(request):
            size += sum(map(len, piece))
            if size > most:
                raise too_large(most)
            if writing is not None:
                await writing
            writing = asyncio.create_task(_write(write, piece))
        if writing is not None:
            await writing
    except ClientDisconnect as error:
        # No trouble of the hub's, and nobody is there to read this.
        raise MlflowError(INVALID, "The upload was cut off; nothing of it was kept.") from error
    finally:
        if writing is not None and not writing.done():
            with suppress(OSError, MlflowError):
                await writing
    return size


def check_size(request: Request, most: int) -> None:
    """Refuse before a byte is read what says that it is too large, or would not fit on the disk."""
    told = request.headers.get("content-length", "")
    if not told.isdecimal():
        return
    if int(told) > most:
        raise too_large(most)
    if int(told) > shutil.disk_usage(settings.DATA_DIR).free:
        raise full()


def too_large(most: int) -> MlflowError:
    return MlflowError(
        INVALID, f"Artifact size is too large: at most {most} bytes are taken (MAX_UPLOAD_BYTES).", status=413
    )


def full() -> MlflowError:
    sentence = (
        "The hub's disk is full; nothing of this file was kept. Its operator must free space below DATA_DIR."
    )
    return MlflowError(EXHAUSTED, sentence, status=507)


def _opened() -> BlobWriter:
    return guarded(BlobWriter)


def guarded(work: Callable[[], T]) -> T:
    """With a full disk's error in the client's words."""
    try:
        return work()
    except OSError as error:
        if error.errno in DISK_FULL:
            raise full() from error
        raise


async def _write(write: Write, piece: list[bytes]) -> None:
    def all_of_it() -> None:
        for chunk in piece:
            write(chunk)

    await anyio.to_thread.run_sync(guarded, all_of_it)


async def _pieces(request: Request) -> AsyncIterator[list[bytes]]:
    """Not joined: that would be a copy of every byte."""
    held: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        held.append(chunk)
        size += len(chunk)
        if size >= PIECE_BYTES:
            yield held
            held, size = [], 0
    if size:
        yield held
