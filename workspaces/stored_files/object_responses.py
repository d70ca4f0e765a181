"""Sends a stored file that is only in the object store: while it is read there, or by an address at which the
client reads it itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
from django.db import close_old_connections
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from workspaces.object_store.client import object_client, store_configuration
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.object_store.rows import live_object
from workspaces.stored_files import blob_cache
from workspaces.stored_files.blob_writer import BlobWriter
from workspaces.stored_files.conditional_response import PRIVATE, ConditionalResponse, refusal
from workspaces.stored_files.piece_sending import Pieces, PieceSending
from workspaces.stored_files.preconditions import Span

T = TypeVar("T")
# What a client sends that reads from the store itself, if BLOB_STORE_PRESIGN allows it: not every client
# reaches the store, and not every one leaves its token behind when it is sent elsewhere.
REDIRECT_HEADER, REDIRECT_VALUE = "X-TrainHub-Redirect", "store"
# As long as a large file may take to begin, not to arrive.
ADDRESS_S = 900.0
# Threads that may wait for the store: those of all other requests stay free.
_reading = anyio.CapacityLimiter(32)


async def redirect_answer(scope: Scope, sha256: str) -> Response | None:
    """Returns the answer that sends the client to the store; None if it cannot be sent there."""
    configuration = store_configuration()
    if configuration is None or not configuration.is_presigned or scope["method"] != "GET":
        return None
    if Headers(scope=scope).get(REDIRECT_HEADER) != REDIRECT_VALUE:
        return None
    address = await _in_thread(_signed_address, sha256)
    return Response(status_code=307, headers={**PRIVATE, "Location": address}) if address else None


async def stored_row(sha256: str) -> StoredObject | None:
    """Returns the row of a file in the store, or on its way there; None if there is none."""
    if store_configuration() is None:
        return None
    return await _in_thread(live_object, sha256)


async def fetch_copy(sha256: str) -> None:
    """Fetches the file to this disk. Raises StoreUnavailable."""
    await _in_thread(blob_cache.local_path, sha256)


async def object_answer(scope: Scope, head: ConditionalResponse, row: StoredObject) -> Response | None:
    """Returns the answer with the file of that row, or one range of it, under the headers of `head`; None for
    several ranges, which only a local file answers."""
    size = row.size_bytes
    early, spans = head.answer_early(scope, size)
    if early is not None:
        return early
    if spans is not None and len(spans) != 1:
        return None
    try:
        row = await _in_thread(blob_cache.uploaded_row, row)
    except StoreUnavailable as error:
        return away(error)
    if spans is None:
        head.headers["content-length"] = str(size)
        return PieceSending(head, _whole_file(row), away, _reading)
    head.status_code = 206
    head.set_span(spans[0], size)
    return PieceSending(head, _one_range(row, spans[0]), away, _reading)


def away(error: Exception) -> Response:
    """Returns the answer to a StoreUnavailable."""
    return refusal(503, "Not readable now", str(error), {"Retry-After": "10"})


def _whole_file(row: StoredObject) -> Pieces:
    """Yields the file, the last piece only if all of it has the right SHA-256; makes a copy on the way if
    there is room."""
    if not blob_cache.has_room(row.size_bytes):
        digest = hashlib.sha256()
        yield from _checked(row, digest.update, digest.hexdigest)
        return
    with BlobWriter() as writer:
        yield from _checked(row, writer.write, lambda: writer.sha256)
        writer.finish_copy()


def _checked(row: StoredObject, add: Callable[[bytes], object], digest: Callable[[], str]) -> Pieces:
    """Yields the file after each piece went to `add`; `digest` returns the SHA-256 of what went there."""
    size = 0
    for piece in blob_cache.read_object(row, 0, row.size_bytes):
        add(piece)
        size += len(piece)
        if size >= row.size_bytes and digest() != row.sha256:
            raise blob_cache.damaged_object(row)
        yield piece


def _one_range(row: StoredObject, span: Span) -> Pieces:
    # The store itself has checked the bytes when they were uploaded; nobody reads the rest for their hash.
    yield from blob_cache.read_object(row, *span)


def _signed_address(sha256: str) -> str:
    row = live_object(sha256)
    if row is None or row.state != ObjectState.STORED:
        return ""
    return object_client().signed_address(row.key, ADDRESS_S)


async def _in_thread(function: Callable[..., T], *arguments: object) -> T:
    def work() -> T:
        close_old_connections()
        try:
            return function(*arguments)
        finally:
            close_old_connections()

    return await anyio.to_thread.run_sync(work, limiter=_reading)
