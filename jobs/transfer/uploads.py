"""Receives files in pieces at offsets, so that an interrupted upload can be resumed.

Only complete files with the right SHA-256 become blobs. Each uploader has a partial file of its own
(workspaces.stored_files.resumable)."""

from __future__ import annotations

import time
from pathlib import Path

from django.conf import settings
from starlette.requests import Request
from starlette.responses import Response

from clusters.models import Node
from jobs.node_api.auth import require_node_or_person
from jobs.transfer import pieces, senders, uploaded_blobs
from jobs.transfer.pieces import Piece, offset_headers
from workspaces.access import Principal
from workspaces.http.problems import Problem, problem_responses
from workspaces.http.threads import in_thread
from workspaces.states import Role
from workspaces.stored_files import blob_cache, blobs, resumable


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
    piece = pieces.parse_piece(request)
    before = await in_thread(_progress, who, sha256)
    if before["Upload-Complete"] == "true":
        return Response(headers=before)
    if int(before["Upload-Offset"]) != piece.start:
        raise pieces.wrong_offset(int(before["Upload-Offset"]))
    if isinstance(who, Principal) and piece.start == 0:
        # What nodes send are outputs of active runs.
        await in_thread(pieces.check_room, who, piece.total)
    data = await pieces.read_piece(request, piece)
    return Response(headers=await in_thread(_write, who, sha256, piece, data))


def sweep(now: float | None = None) -> int:
    """Deletes partial files that have not grown for `KEEP_UNFINISHED_S`; returns how many."""
    before = (time.time() if now is None else now) - resumable.KEEP_UNFINISHED_S
    senders.forget_settled()
    uploaded_blobs.forget_uploaded(before)
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


def _progress(who: Node | Principal, sha256: str) -> dict[str, str]:
    if _is_visible_to(who, sha256) and blobs.hold(sha256):
        return offset_headers(blob_cache.size_of(sha256), is_complete=True)
    return offset_headers(resumable.stored_bytes(_part(who, sha256)))


def _is_visible_to(who: Node | Principal, sha256: str) -> bool:
    """Returns whether the caller may learn that the blob exists; knowing its hash is not enough.

    A person may if they have sent it themselves or their workspace has it; a node if that is so for every
    attempt it holds."""
    if not blobs.exists(sha256):
        return False
    return senders.may_name(who, sha256) if isinstance(who, Node) else uploaded_blobs.may_name(who, sha256)


def _write(who: Node | Principal, sha256: str, piece: Piece, data: bytes) -> dict[str, str]:
    part = resumable.Part(_part(who, sha256), sha256, piece.total)
    at = pieces.append_piece(part, piece, data).stored
    is_complete = at == piece.total
    if is_complete:
        if isinstance(who, Node):
            senders.record_sent(who, sha256)
        else:
            uploaded_blobs.record_uploaded(who, sha256)
    return offset_headers(at, is_complete=is_complete)


def _part(who: Node | Principal, sha256: str) -> Path:
    """Returns the partial file of this uploader: each has its own, so that none can corrupt another's."""
    owner = f"node-{who.pk}" if isinstance(who, Node) else f"user-{who.user.pk}"
    return _folder() / f"{sha256}.{owner}"


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "uploads"
