"""Receives a file that a node uploads for an order."""

from __future__ import annotations

from starlette.requests import Request

from workspaces.http.problems import Problem
from workspaces.http.threads import in_thread
from workspaces.stored_files.blob_writer import BlobWriter

PIECE_BYTES = 1024 * 1024


def content_length(request: Request) -> int:
    """Returns the length of the file. Raises Problem if the request does not say it."""
    size = request.headers.get("content-length", "")
    if not size.isdecimal() or len(size) > 15:
        raise Problem(411, "Length required", "Send the file with its length in Content-Length.")
    return int(size)


async def receive_file(request: Request, writer: BlobWriter, size: int) -> None:
    """Writes the body in pieces. Raises Problem if it is not as long as it was said to be."""
    pieces = bytearray()
    async for chunk in request.stream():
        pieces += chunk
        if writer.size + len(pieces) > size:
            break
        if len(pieces) >= PIECE_BYTES:
            await in_thread(writer.write, bytes(pieces))
            pieces.clear()
    if writer.size + len(pieces) != size:
        raise Problem(400, "Bad request", f"Content-Length promises {size} bytes; another number came.")
    await in_thread(writer.write, bytes(pieces))
