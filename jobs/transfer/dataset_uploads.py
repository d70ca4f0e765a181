"""Receives the files of versions of datasets: each whole, or large ones in pieces that can be resumed.

A file counts once all of it is stored; of a request that is cut off nothing remains, except the pieces before
it."""

from __future__ import annotations

import math
from http import HTTPStatus

from django.conf import settings
from django.db import IntegrityError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from datastores.models import DatasetVersion
from datastores.uploads import comparison, file_rules, sessions
from datastores.uploads.file_rules import SentFile
from jobs.transfer import pieces
from jobs.transfer.pieces import Piece
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.http.auth import require_person
from workspaces.http.problems import FieldProblem, Problem, not_found, problem_responses
from workspaces.http.threads import in_thread
from workspaces.states import Role
from workspaces.stored_files import blobs, resumable
from workspaces.stored_files.blob_writer import BlobWriter

ADDRESS = "/api/v1/datasets/{name:str}/versions/{number:int}/upload/files/{path:rest}"
CHUNK_BYTES = 1024 * 1024
MAX_NUMBER = 2**31 - 1


@problem_responses
async def put_file(request: Request) -> Response:
    """PUT: stores a file of an upload, or with Content-Range a piece of it. The parameter `modified_at` is
    its time in seconds since 1970, and `size` its size as its uploader knows it."""
    who = await require_person(request)
    if not who.may(Role.CONTRIBUTOR):
        raise Problem(HTTPStatus.FORBIDDEN, "Not allowed", "Uploading needs the role contributor.")
    version = await in_thread(_upload, who, request.path_params)
    piece = pieces.parse_piece(request) if "content-range" in request.headers else None
    file = _file(request, piece)
    if piece is not None and piece.length < piece.total:
        return await _put_piece(request, who, version, file, piece)
    return await _put_whole(request, who, version, file)


async def _put_whole(request: Request, who: Principal, version: DatasetVersion, file: SentFile) -> Response:
    await in_thread(_check_room, who, version, file)
    writer = await in_thread(BlobWriter)
    try:
        await _receive(request, writer, file)
        await in_thread(_finish, version, file._replace(size=writer.size), writer)
    except ClientDisconnect as error:
        # Nobody is left to read this.
        raise Problem(HTTPStatus.BAD_REQUEST, "Cut off", "The file was cut off; send it again.") from error
    except OSError as error:
        if error.errno in blobs.DISK_FULL:
            raise pieces.disk_full() from error
        raise
    finally:
        await in_thread(writer.__exit__, None, None, None)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def _receive(request: Request, writer: BlobWriter, file: SentFile) -> None:
    """Writes the body. Raises Problem, ClientDisconnect and OSError."""
    waiting: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        waiting.append(chunk)
        size += len(chunk)
        if size > settings.MAX_UPLOAD_BYTES:
            raise _refused(file_rules.file_refusal(file._replace(size=size)))
        if sum(map(len, waiting)) >= CHUNK_BYTES:
            await in_thread(writer.write, b"".join(waiting))
            waiting = []
    if waiting:
        # In memory until `_finish` writes it to the disk.
        await in_thread(writer.write, b"".join(waiting))
    expected = request.query_params.get("size", "")
    if expected and expected != str(size):
        raise Problem(
            HTTPStatus.CONFLICT,
            "Changed",
            f"{file.path} has {size} bytes, and {expected:.20} were expected: it was changed while it was "
            "sent. Send it again.",
        )


async def _put_piece(
    request: Request, who: Principal, version: DatasetVersion, file: SentFile, piece: Piece
) -> Response:
    part = resumable.Part(comparison.part_path(version, file), "", piece.total)
    stored = await in_thread(resumable.stored_bytes, part.path)
    if stored != piece.start:
        raise pieces.wrong_offset(stored)
    if piece.start == 0:
        await in_thread(_check_room, who, version, file)
    data = await pieces.read_piece(request, piece)
    at = await in_thread(_append, version, file, part, piece, data)
    return Response(headers=pieces.offset_headers(at, is_complete=at == piece.total))


def _upload(who: Principal, params: dict[str, object]) -> DatasetVersion:
    """Returns the upload that this person has begun. Raises Problem."""
    rows = DatasetVersion.objects.filter(dataset__workspace=who.workspace, dataset__name=params["name"])
    number = min(int(str(params["number"])), MAX_NUMBER)
    version = rows.select_related("dataset", "created_by").filter(number=number).first()
    if version is None:
        raise not_found("There is no such upload: it was cancelled, or its dataset was deleted.")
    try:
        sessions.require_uploader(who, version)
    except SpecError as error:
        raise FieldProblem(HTTPStatus.CONFLICT, "Not taken", error.field, error.message) from error
    return version


def _file(request: Request, piece: Piece | None) -> SentFile:
    """Returns the file that is sent; its size is 0 while it is not known. Raises Problem."""
    declared = request.headers.get("content-length", "")
    # A number of 20 digits is past every limit, and `int` refuses thousands of them.
    size = piece.total if piece is not None else int(declared[:20]) if declared.isdecimal() else 0
    file = SentFile(request.path_params["path"], size, _time(request.query_params.get("modified_at")))
    if wrong := file_rules.file_refusal(file):
        raise _refused(wrong)
    return file


def _time(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        # Refused like other times that cannot be.
        return math.nan


def _refused(reason: str) -> Problem:
    return FieldProblem(HTTPStatus.BAD_REQUEST, "Refused", "path", reason)


def _check_room(who: Principal, version: DatasetVersion, file: SentFile) -> None:
    if wrong := file_rules.room_refusal(version.files, version.bytes + file.size):
        raise FieldProblem(HTTPStatus.BAD_REQUEST, "Refused", "files", wrong)
    pieces.require_free_disk(file.size)
    pieces.check_room(who, file.size)


def _finish(version: DatasetVersion, file: SentFile, writer: BlobWriter) -> None:
    _store(version, file, writer.finish())


def _append(version: DatasetVersion, file: SentFile, part: resumable.Part, piece: Piece, data: bytes) -> int:
    stored, sha256 = pieces.append_piece(part, piece, data)
    if sha256:
        _store(version, file, sha256)
    return stored


def _store(version: DatasetVersion, file: SentFile, sha256: str) -> None:
    try:
        sessions.store_file(version, file, sha256)
    except SpecError as error:
        raise FieldProblem(HTTPStatus.BAD_REQUEST, "Refused", error.field, error.message) from error
    except (sessions.UploadOver, IntegrityError) as error:
        raise Problem(
            HTTPStatus.CONFLICT,
            "Over",
            "This upload takes no files any more: it was cancelled, or its dataset was deleted.",
        ) from error
