"""Stored files of these tests."""

from __future__ import annotations

from tests.stores.s3_server import BUCKET, S3Server
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.stored_files import blob_uploads, blobs
from workspaces.stored_files.blob_writer import BlobWriter


def stored(content: bytes) -> str:
    """Returns the SHA-256 of a file that waits for its upload."""
    with BlobWriter() as writer:
        writer.write(content)
        return writer.finish()


def uploaded(content: bytes, *, is_local: bool = True) -> str:
    """Returns the SHA-256 of a file that is in the store, and on the disk, too, if `is_local`."""
    sha256 = stored(content)
    blob_uploads.upload_waiting()
    assert row_of(sha256).state == ObjectState.STORED
    if not is_local:
        blobs.path(sha256).unlink()
    return sha256


def row_of(sha256: str) -> StoredObject:
    """Returns the newest row of the file."""
    return StoredObject.objects.filter(sha256=sha256).latest("pk")


def objects(server: S3Server) -> dict[str, bytes]:
    return server.objects[BUCKET]
