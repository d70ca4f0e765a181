"""The manifests, configurations and layers that the hub keeps for its nodes, as stored files."""

from __future__ import annotations

from collections.abc import Collection

from environments.models import EnvironmentVersion, ImageBlob
from workspaces.models import Workspace
from workspaces.stored_files import blob_cache, blobs
from workspaces.stored_files.blob_writer import BlobWriter


def store(version: EnvironmentVersion, data: bytes) -> None:
    """Stores the bytes for the version."""
    with BlobWriter() as writer:
        writer.write(data)
        sha256 = writer.finish()
    record(version, sha256, len(data))


def record(version: EnvironmentVersion, sha256: str, size: int) -> None:
    """Records that the bytes have been stored for the version."""
    ImageBlob.objects.get_or_create(version=version, sha256=sha256, defaults={"size_bytes": size})


def stored_sizes_of_image(workspace: Workspace, sha256s: Collection[str]) -> dict[str, int]:
    """Returns the sizes of those parts whose bytes the hub has fetched for images of the workspace, by
    SHA-256."""
    own = ImageBlob.objects.filter(sha256__in=list(sha256s), version__environment__workspace=workspace)
    sizes = dict(own.values_list("sha256", "size_bytes"))
    absent = blob_cache.absent_hashes(sizes)
    return {sha256: size for sha256, size in sizes.items() if sha256 not in absent}


def is_stored(version: EnvironmentVersion, workspace: Workspace, sha256: str, size: int) -> bool:
    """Returns whether nodes may have the stored bytes for the version: they were fetched for it, or for
    another image of its workspace. The bytes of others do not count: a manifest may name any SHA-256, and
    must not open a file by that."""
    own = ImageBlob.objects.filter(sha256=sha256, version__environment__workspace=workspace)
    versions = set(own.values_list("version_id", flat=True))
    if not versions or not blobs.hold(sha256):
        return False
    if version.pk not in versions:
        record(version, sha256, size)
    return True
