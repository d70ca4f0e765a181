"""Receives files in pieces at offsets, so that an interrupted upload can be resumed.

Only complete files with the right SHA-256 become blobs. Each uploader has a partial file of its own
(workspaces.stored_files.resumable)."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from starlette.requests import Request
from starlette.responses import Response

from clusters.models import Node
from jobs.models import Snapshot
from jobs.node_api.auth import require_node_or_person
from jobs.quotas import disk_quota
from jobs.transfer import senders
from workspaces.access import Principal
from workspaces.http.problems import FieldProblem, Problem, problem_responses
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread
from workspaces.states import Role
from workspaces.stored_files import blobs, resumable

MAX_PIECE_BYTES = 8 * 1024 * 1024
RANGE = re.compile(r"bytes (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15})\Z")


class Piece(NamedTuple):
    """`length` bytes from `start` of a file of `total` bytes."""

    start: int
    length: int
    total: int


@problem_responses
async def progress(request: Request) -> Response:
    """HEAD: reports how much of the file is stored."""
    who, sha256 = await _parse_request(request)
    return Response(headers=await in_thread(_progress, who, sha256))


@problem_responses
async def put(request: Request) -> Response:
    """PUT: stores one piece at the offset that HEAD reports. Answers 422 if the complete file has another
    SHA-256; the upload must then start again."""
    who, sha256 = await _parse_request(request)
    if isinstance(who, Principal) and not who.may(Role.CONTRIBUTOR):
        raise Problem(403, "Not allowed", "Uploading needs the role contributor.")
    piece = _piece(request)
    before = await in_thread(_progress, who, sha256)
    if before["Upload-Complete"] == "true":
        return Response(headers=before)
    if int(before["Upload-Offset"]) != piece.start:
        raise _wrong_offset(before)
    if isinstance(who, Principal) and piece.start == 0:
        await in_thread(_check_room, who, piece.total)
    data = await read_body(request, MAX_PIECE_BYTES)
    if len(data) != piece.length:
        raise Problem(
            400, "Bad request", f"Content-Range promises {piece.length} bytes, and {len(data)} came."
        )
    return Response(headers=await in_thread(_write, who, sha256, piece, data))


def sweep(now: float | None = None) -> int:
    """Deletes partial files that have not grown for `KEEP_UNFINISHED_S`; returns how many."""
    before = (time.time() if now is None else now) - resumable.KEEP_UNFINISHED_S
    senders.forget_settled()
    return resumable.remove_forgotten(_folder(), before)


async def _parse_request(request: Request) -> tuple[Node | Principal, str]:
    who = await require_node_or_person(request)
    sha256 = request.path_params["sha256"]
    if not blobs.SHA256.match(sha256):
        raise Problem(
            400,
            "Bad request",
            "The address ends with the file's SHA-256 in 64 lower-case hexadecimal digits.",
        )
    return who, sha256


def _piece(request: Request) -> Piece:
    match = RANGE.match(request.headers.get("content-range", ""))
    if match is None:
        example = "'bytes 0-8388607/12345678', or 'bytes */0' for an empty file"
        raise Problem(400, "Bad request", f"Content-Range must be like {example}.")
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


def _progress(who: Node | Principal, sha256: str) -> dict[str, str]:
    if _is_visible_to(who, sha256) and blobs.hold(sha256):
        return _headers(blobs.path(sha256).stat().st_size, complete=True)
    return _headers(resumable.stored_bytes(_part(who, sha256)), complete=False)


def _is_visible_to(who: Node | Principal, sha256: str) -> bool:
    """Returns whether the caller may learn that the blob exists; knowing its hash is not enough.

    A person may if their workspace has it; a node if, for every attempt it holds, it has sent the blob itself
    or the workspace has it."""
    if not blobs.exists(sha256):
        return False
    if isinstance(who, Node):
        return senders.may_name(who, sha256)
    return Snapshot.objects.filter(workspace=who.workspace, sha256=sha256).exists()


def _write(who: Node | Principal, sha256: str, piece: Piece, data: bytes) -> dict[str, str]:
    part = resumable.Part(_part(who, sha256), sha256, piece.total)
    try:
        if shutil.disk_usage(settings.DATA_DIR).free < len(data):
            raise _disk_full()
        at = resumable.append(part, piece.start, data)
    except resumable.WrongOffset as error:
        raise _wrong_offset(_headers(error.expected, complete=False)) from error
    except resumable.Busy as error:
        sentence = (
            "Another request is writing this file. Use HEAD to find out how much of it is stored, and "
            "continue from there."
        )
        raise Problem(503, "Busy", sentence, Retry_After="1") from error
    except blobs.BlobError as error:
        raise Problem(
            422, "Wrong content", f"{error}. Send the file again from the beginning.", Upload_Offset="0"
        ) from error
    except OSError as error:
        if error.errno in blobs.DISK_FULL:
            raise _disk_full() from error
        raise
    is_complete = at == piece.total
    if is_complete and isinstance(who, Node):
        senders.record_sent(who, sha256)
    return _headers(at, complete=is_complete)


def _check_room(who: Principal, size_bytes: int) -> None:
    """Raises Problem if a quota of disk leaves no room. What nodes send are outputs of active runs."""
    try:
        disk_quota.check_room(who.workspace, who.user, size_bytes, field="file")
    except disk_quota.DiskQuotaExceeded as error:
        raise FieldProblem(403, "Not allowed", error.field, error.message) from error


def _wrong_offset(progress: dict[str, str]) -> Problem:
    return Problem(
        409,
        "Not at this offset",
        f"The next expected byte is {progress['Upload-Offset']}.",
        **_header_arguments(progress),
    )


def _disk_full() -> Problem:
    sentence = (
        "The hub's disk is full. The bytes received so far are kept; after the operator has freed space "
        "below DATA_DIR, the upload can be resumed."
    )
    return Problem(507, "Disk full", sentence, Retry_After="5")


def _part(who: Node | Principal, sha256: str) -> Path:
    """Returns the partial file of this uploader: each has its own, so that none can corrupt another's."""
    owner = f"node-{who.pk}" if isinstance(who, Node) else f"user-{who.user.pk}"
    return _folder() / f"{sha256}.{owner}"


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "uploads"


def _headers(offset: int, *, complete: bool) -> dict[str, str]:
    return {"Upload-Offset": str(offset), "Upload-Complete": "true" if complete else "false"}


def _header_arguments(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("-", "_"): value for name, value in headers.items()}
