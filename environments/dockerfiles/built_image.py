"""The image that a node has built and uploaded: its lock, and the parts that the hub then serves to nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from environments.errors import Unresolvable
from environments.images import image_store
from environments.images.image_lock import BUILT, MAX_CONFIG_BYTES, ImageLock, make_image_lock
from environments.images.manifest import Layer, read_manifest
from environments.images.reference import DIGEST
from environments.images.registry_client import MAX_MANIFEST_BYTES, OCI_MANIFEST, StoredManifest
from environments.images.registry_error import RegistryError
from environments.models import EnvironmentVersion, ImageBlob
from workspaces.stored_files import blob_cache, blobs


def has_part(version: EnvironmentVersion, sha256: str) -> bool:
    """Returns whether an image of the workspace has this part already, such as a layer of the base image."""
    own = ImageBlob.objects.filter(
        sha256=sha256, version__environment__workspace=version.environment.workspace
    )
    return own.exists() and blobs.hold(sha256)


def lock_built_image(
    version: EnvironmentVersion, result: Mapping[str, Any], files: Mapping[str, int]
) -> ImageLock:
    """Returns the lock, and records all parts of the image for the version. Raises Unresolvable."""
    digest = result.get("digest")
    if not isinstance(digest, str) or not DIGEST.match(digest):
        raise Unresolvable("The node has named no image. Upgrade its agent, and build the version again.")
    try:
        data = _content(version, digest.removeprefix("sha256:"), files, MAX_MANIFEST_BYTES)
        manifest = StoredManifest(data, OCI_MANIFEST)
        parsed = read_manifest(manifest, "the image")
        config = _content(version, parsed.config.sha256, files, MAX_CONFIG_BYTES)
        lock = make_image_lock(f"{BUILT}:{version.number}", manifest, OCI_MANIFEST, config)
    except RegistryError as error:
        raise Unresolvable(f"The node has built something that nodes cannot run: {error}") from error
    for part in lock.blobs.values():
        _require(version, part, files)
    for part in (Layer(digest, len(data), OCI_MANIFEST), *lock.blobs.values()):
        image_store.record(version, part.sha256, part.size)
    return lock


def _content(version: EnvironmentVersion, sha256: str, files: Mapping[str, int], max_bytes: int) -> bytes:
    """Returns the bytes of a part that the node has uploaded, or that an image of the workspace has: no other
    stored file is ever read for this."""
    is_there = (sha256 in files and blobs.hold(sha256)) or has_part(version, sha256)
    if not is_there or blob_cache.size_of(sha256) > max_bytes:
        raise RegistryError("its description was not uploaded, or is too large. Build the version again.")
    return blob_cache.local_path(sha256).read_bytes()


def _require(version: EnvironmentVersion, part: Layer, files: Mapping[str, int]) -> None:
    if not DIGEST.match(part.digest):
        raise Unresolvable("The image names a layer without a SHA-256. Build the version again.")
    is_uploaded = files.get(part.sha256) == part.size and blobs.hold(part.sha256)
    if not is_uploaded and not has_part(version, part.sha256):
        raise Unresolvable(f"The layer {part.digest} was not uploaded. Build the version again.")
