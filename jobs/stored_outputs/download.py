"""Downloads of outputs that lie in a datastore."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from datastores.object_reads.object_response import StoreObjectResponse
from datastores.object_reads.store_object import StoreObject
from jobs.models import StoredOutput
from workspaces.models import User
from workspaces.stored_files.conditional_response import OCTETS


def object_of(row: StoredOutput) -> StoreObject:
    """Returns the file as the hub reads it."""
    return StoreObject(
        row.folder.datastore, row.full_path, row.place, row.size_bytes, row.sha256, row.created_at
    )


def stored_output_response(
    row: StoredOutput, reader: User | None, headers: Mapping[str, str], media_type: str = OCTETS
) -> StoreObjectResponse:
    """Returns a download, always as an attachment. Raises Problem if the hub cannot read the datastore."""
    name = PurePosixPath(row.path).name
    return StoreObjectResponse(
        object_of(row), filename=name, reader=reader, media_type=media_type, headers=headers
    )
