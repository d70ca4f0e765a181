"""Taking files in pieces at offsets: an interrupted upload goes on where it stopped.

Only whole files of the right SHA-256 become blobs.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from starlette.requests import Request
from starlette.responses import Response

from clusters.models import Node
from jobs.bytes import doors
from jobs.bytes.doors import Problem, door
from jobs.models import Snapshot
from workspaces import blobs
from workspaces.access import Principal
from workspaces.states import Role

MAX_PIECE_BYTES = 8 * 1024 * 1024
KEEP_S = 7 * 86_400.0
RANGE = re.compile(r"bytes (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15})\Z")


class Piece(NamedTuple):
    """`length` bytes from `start` of a file of `total` bytes."""

    start: int
    length: int
    total: int


@door
async def progress(request: Request) -> Response:
    """HEAD: how much of the file is here."""
    who, sha256 = await _asked(request)
    return Response(headers=await doors.in_thread(_progress, who, sha256))


@door
async def put(request: Request) -> Response:
    """PUT: one piece at the offset that HEAD names. 422 where the whole has another SHA-256; then it begins anew."""
    who, sha256 = await _asked(request)
    if isinstance(who, Principal) and not who.may(Role.CONTRIBUTOR):
        raise Problem(403, "Not allowed", "Uploading needs the role contributor.")
    piece = _piece(request)
    before = await doors.in_thread(_progress, who, sha256)
    if before["Upload-Complete"] == "true":
        return Response(headers=before)
    if int(before["Upload-Offset"]) != piece.start:
        raise Problem(409, "Not at this offset", f"The next byte wanted is {before['Upload-Offset']}.", **_named(before))
    data = await doors.body(request, MAX_PIECE_BYTES)
    if len(data) != piece.length:
        raise Problem(400, "Bad request", f"Content-Range promises {piece.length} bytes, and {len(data)} came.")
    return Response(headers=await doors.in_thread(_write, who, sha256, piece, data))


def sweep(now: float | None = None) -> int:
    """Delete what has come of files that nobody has gone on with for a week; how many."""
    before = (time.time() if now is None else now) - KEEP_S
    forgotten = [file for file in _folder().glob("*.*") if file.is_file() and file.stat().st_mtime < before]
    for file in forgotten:
        file.unlink(missing_ok=True)
    return len(forgotten)


async def _asked(request: Request) -> tuple[Node | Principal, str]:
    who = await doors.node_or_principal(request)
    sha256 = request.path_params["sha256"]
    if not blobs.SHA256.match(sha256):
        raise Problem(400, "Bad request", "The address ends with the file's SHA-256 in 64 lower-case hexadecimal digits.")
    return who, sha256


def _piece(request: Request) -> Piece:
    found = RANGE.match(request.headers.get("content-range", ""))
    if found is None:
        example = "'bytes 0-8388607/12345678', or 'bytes */0' for an empty file"
        raise Problem(400, "Bad request", f"Content-Range must be like {example}.")
    total = int(found[3])
    start, end = (int(found[1]), int(found[2])) if found[1] is not None else (0, -1)
    if not (0 <= start <= end + 1 <= total) or (start > end and total):
        raise Problem(400, "Bad request", "Content-Range must lie inside the file.")
    if total > settings.MAX_UPLOAD_BYTES:
        raise Problem(413, "Too large", f"Files of at most {settings.MAX_UPLOAD_BYTES} bytes are taken (MAX_UPLOAD_BYTES).")
    if end - start + 1 > MAX_PIECE_BYTES:
        raise Problem(413, "Too large", f"At most {MAX_PIECE_BYTES} bytes are taken at once.")
    return Piece(start, end - start + 1, total)


def _progress(who: Node | Principal, sha256: str) -> dict[str, str]:
    if _is_known_to(who, sha256):
        blobs.keep(sha256)
        return _headers(blobs.path(sha256).stat().st_size, complete=True)
    part = _part(who, sha256)
    return _headers(part.stat().st_size if part.exists() else 0, complete=False)


def _is_known_to(who: Node | Principal, sha256: str) -> bool:
    """A person learns that a blob exists only where their workspace has it: knowing a hash is not owning the file."""
    if not blobs.exists(sha256):
        return False
    return isinstance(who, Node) or Snapshot.objects.filter(workspace=who.workspace, sha256=sha256).exists()


def _write(who: Node | Principal, sha256: str, piece: Piece, data: bytes) -> dict[str, str]:
    part = _part(who, sha256)
    part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        rest, at = memoryview(data), piece.start
        while rest:
            written = os.pwrite(descriptor, rest, at)
            rest, at = rest[written:], at + written
    finally:
        os.close(descriptor)
    if at < piece.total:
        return _headers(at, complete=False)
    try:
        blobs.adopt(part, sha256)
    except blobs.BlobError as error:
        part.unlink(missing_ok=True)
        raise Problem(422, "Wrong content", f"{error}. Send the file again from the beginning.", Upload_Offset="0") from error
    return _headers(piece.total, complete=True)


def _part(who: Node | Principal, sha256: str) -> Path:
    """Each uploader has a file of its own: nobody can spoil another's."""
    owner = f"node-{who.pk}" if isinstance(who, Node) else f"user-{who.user.pk}"
    return _folder() / f"{sha256}.{owner}"


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "uploads"


def _headers(offset: int, *, complete: bool) -> dict[str, str]:
    return {"Upload-Offset": str(offset), "Upload-Complete": "true" if complete else "false"}


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("-", "_"): value for name, value in headers.items()}
