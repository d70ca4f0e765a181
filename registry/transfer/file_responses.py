"""Responses with a version's files: always downloads, with their SHA-256 and verdict in headers."""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.responses import Response

from datastores.object_reads.object_response import StoreObjectResponse
from datastores.object_reads.store_object import StoreObject
from registry.models import ModelFile, ReferencedFile
from registry.scanning.verdicts import verdict
from tracking.artifacts.file_responses import HEADERS
from workspaces.models import User
from workspaces.stored_files import blobs
from workspaces.stored_files.conditional_response import OCTETS
from workspaces.stored_files.responses import StoredFileResponse

SCAN = "X-TrainHub-Scan"


def model_file(
    file: ModelFile | ReferencedFile, reader: User | None, *, media_type: str = OCTETS
) -> Response:
    """Returns a response that supports Range and conditional requests. `reader`: who downloads the file. The
    caller has selected `file.version` and checked that the blob exists. Raises Problem if the hub cannot read
    the datastore in which the file lies."""
    headers = {**HEADERS, "X-Content-SHA256": file.sha256, SCAN: verdict(file.version, file.path)}
    if isinstance(file, ReferencedFile):
        name = PurePosixPath(file.path).name
        return StoreObjectResponse(
            object_of(file), filename=name, reader=reader, media_type=media_type, headers=headers
        )
    return StoredFileResponse(
        blobs.path(file.sha256),
        sha256=file.sha256,
        media_type=media_type,
        filename=PurePosixPath(file.path).name,
        modified_at=file.version.created_at,
        headers=headers,
    )


def object_of(file: ReferencedFile) -> StoreObject:
    """Returns the file as the hub reads it. The caller has selected `file.version`."""
    return StoreObject(
        file.datastore, file.store_path, file.place, file.size_bytes, file.sha256, file.version.created_at
    )


def certificate_file(name: str, data: bytes) -> Response:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type="application/json", headers=headers)
