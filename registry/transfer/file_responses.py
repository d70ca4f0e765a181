"""Responses with a version's files: always downloads, with their SHA-256 and verdict in headers."""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.responses import Response

from registry.models import ModelFile
from registry.scanning.verdicts import verdict
from tracking.artifacts.file_responses import HEADERS
from workspaces.stored_files import blobs
from workspaces.stored_files.conditional_response import OCTETS
from workspaces.stored_files.responses import StoredFileResponse

SCAN = "X-TrainHub-Scan"


def model_file(file: ModelFile, *, media_type: str = OCTETS) -> Response:
    """Returns a response that supports Range and conditional requests. The caller has selected `file.version`
    and checked that the blob exists."""
    headers = {**HEADERS, "X-Content-SHA256": file.sha256, SCAN: verdict(file.version, file.path)}
    return StoredFileResponse(
        blobs.path(file.sha256),
        sha256=file.sha256,
        media_type=media_type,
        filename=PurePosixPath(file.path).name,
        modified_at=file.version.created_at,
        headers=headers,
    )


def certificate_file(name: str, data: bytes) -> Response:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type="application/json", headers=headers)
