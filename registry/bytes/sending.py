"""How a version's files leave: always as downloads, with their SHA-256 and what the scanner says of them."""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.responses import Response

from registry.models import ModelFile
from registry.scanning.verdicts import verdict
from tracking.artifacts.sending import HEADERS, Download
from workspaces import blobs

SCAN = "X-TrainHub-Scan"


def model_file(file: ModelFile) -> Response:
    """With Range; `file.version` is to be at hand, and the blob to be there."""
    headers = {
        **HEADERS, "ETag": f'"{file.sha256}"', "X-Content-SHA256": file.sha256, SCAN: verdict(file.version, file.path),
    }
    name = PurePosixPath(file.path).name
    return Download(blobs.path(file.sha256), media_type="application/octet-stream", filename=name, headers=headers)


def certificate_file(name: str, data: bytes) -> Response:
    told = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type="application/json", headers=told)
