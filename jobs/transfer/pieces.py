"""Pieces of files that are uploaded at offsets, and what is answered about them."""

from __future__ import annotations

import re
import shutil
from typing import NamedTuple

from django.conf import settings
from starlette.requests import Request

from jobs.quotas import disk_quota
from workspaces.access import Principal
from workspaces.http.problems import FieldProblem, Problem
from workspaces.http.requests import read_body
from workspaces.stored_files import blobs, resumable
from workspaces.stored_files.resumable import Appended, Part

MAX_PIECE_BYTES = 8 * 1024 * 1024
RANGE = re.compile(r"bytes (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15})\Z")


class Piece(NamedTuple):
    """`length` bytes from `start` of a file of `total` bytes."""

    start: int
    length: int
    total: int


def parse_piece(request: Request) -> Piece:
    """Returns the piece that the header Content-Range names. Raises Problem."""
    match = RANGE.match(request.headers.get("content-range", ""))
    if match is None:
        hint = (
            "If you have sent it, a proxy between has removed it: docs/network.md says what it must pass on."
        )
        example = "'bytes 0-8388607/12345678', or 'bytes */0' for an empty file"
        raise Problem(400, "Bad request", f"Content-Range must be like {example}. {hint}")
    total = int(match[3])
    start, end = (int(match[1]), int(match[2])) if match[1] is not None else (0, -1)
    if not (0 <= start <= end + 1 <= total) or (start > end and total):
        raise Problem(400, "Bad request", "Content-Range must lie inside the file.")
    if total > settings.MAX_UPLOAD_BYTES:
        raise Problem(
            413,
            "Too large",
            f"Files may have at most {settings.MAX_UPLOAD_BYTES} bytes (MAX_UPLOAD_BYTES).",
        )
    if end - start + 1 > MAX_PIECE_BYTES:
        raise Problem(413, "Too large", f"A piece may have at most {MAX_PIECE_BYTES} bytes.")
    return Piece(start, end - start + 1, total)


async def read_piece(request: Request, piece: Piece) -> bytes:
    """Returns the body, which is this piece. Raises Problem."""
    data = await read_body(request, MAX_PIECE_BYTES)
    if len(data) != piece.length:
        raise Problem(
            400, "Bad request", f"Content-Range promises {piece.length} bytes, and {len(data)} came."
        )
    return data


def append_piece(part: Part, piece: Piece, data: bytes) -> Appended:
    """Writes a piece. Raises Problem."""
    try:
        require_free_disk(len(data))
        return resumable.append(part, piece.start, data)
    except resumable.WrongOffset as error:
        raise wrong_offset(error.expected) from error
    except resumable.Busy as error:
        sentence = (
            "Another request is writing this file. Ask how much of it is stored, and continue from there."
        )
        raise Problem(503, "Busy", sentence, Retry_After="1") from error
    except blobs.BlobError as error:
        raise Problem(
            422, "Wrong content", f"{error}. Send the file again from the beginning.", Upload_Offset="0"
        ) from error
    except OSError as error:
        if error.errno in blobs.DISK_FULL:
            raise disk_full() from error
        raise


def check_room(who: Principal, size_bytes: int) -> None:
    """Raises Problem if a quota of disk leaves no room."""
    try:
        disk_quota.check_room(who.workspace, who.user, size_bytes, field="file")
    except disk_quota.DiskQuotaExceeded as error:
        raise FieldProblem(403, "Not allowed", error.field, error.message) from error


def require_free_disk(size_bytes: int) -> None:
    """Raises Problem if the hub's disk has no room."""
    if shutil.disk_usage(settings.DATA_DIR).free < size_bytes:
        raise disk_full()


def disk_full() -> Problem:
    sentence = (
        "The hub's disk is full. What was received before is kept; after the operator has freed space "
        "below DATA_DIR, the upload can be resumed."
    )
    return Problem(507, "Disk full", sentence, Retry_After="5")


def wrong_offset(expected: int) -> Problem:
    return Problem(
        409,
        "Not at this offset",
        f"The next expected byte is {expected}.",
        **{name.replace("-", "_"): value for name, value in offset_headers(expected).items()},
    )


def offset_headers(offset: int, *, is_complete: bool = False) -> dict[str, str]:
    return {"Upload-Offset": str(offset), "Upload-Complete": "true" if is_complete else "false"}
