"""Reads manifests, indexes and configurations of images, in the forms of OCI and of Docker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from environments.images.reference import DIGEST
from environments.images.registry_client import DOCKER_INDEX, OCI_INDEX, StoredManifest
from environments.images.registry_error import RegistryError

MAX_LAYERS = 1000
OS, ARCHITECTURE = PLATFORM = ("linux", "amd64")
_CONFIG_TYPES = (
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
)
_FOREIGN = ("foreign", "nondistributable")


@dataclass(frozen=True)
class Layer:
    """A blob of an image: a layer, or its configuration. `digest`: "sha256:…"."""

    digest: str
    size: int
    media_type: str

    @property
    def sha256(self) -> str:
        return self.digest.removeprefix("sha256:")


@dataclass(frozen=True)
class ImageManifest:
    config: Layer
    layers: tuple[Layer, ...]


def read_json(data: bytes, what: str) -> dict[str, Any]:
    """Raises RegistryError if the bytes are no JSON object."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RegistryError(f"{what} is not readable. Check that the address is that of an image registry.")
    return value


def platform_digest(manifest: StoredManifest, image: str) -> str | None:
    """Returns the digest of the manifest for Linux on x86-64 in an index, or None if `manifest` is no index.
    Raises RegistryError that names the architectures there are."""
    content = read_json(manifest.data, f"The manifest of {image}")
    if content.get("mediaType", manifest.media_type) not in (OCI_INDEX, DOCKER_INDEX) and not isinstance(
        content.get("manifests"), list
    ):
        return None
    entries = [entry for entry in content.get("manifests", ()) if isinstance(entry, Mapping)]
    available = []
    for entry in entries:
        platform = entry.get("platform")
        platform = platform if isinstance(platform, Mapping) else {}
        names = (str(platform.get("os", "")), str(platform.get("architecture", "")))
        # An entry such as v3 would need a newer CPU than any node must have.
        if names == PLATFORM and platform.get("variant", "") in ("", "v1"):
            return _digest(entry, image)
        if "unknown" not in names:
            available.append("/".join(filter(None, (*names, str(platform.get("variant", ""))))))
    there = ", ".join(dict.fromkeys(filter(None, available))) or "none that is named"
    raise RegistryError(
        f"{image} is not there for linux/amd64, which the nodes need; there is {there:.500}. Take an image "
        "that was built for linux/amd64."
    )


def read_manifest(manifest: StoredManifest, image: str) -> ImageManifest:
    """Raises RegistryError if it is not the manifest of an image that nodes can pull."""
    content = read_json(manifest.data, f"The manifest of {image}")
    config, layers = content.get("config"), content.get("layers")
    if content.get("schemaVersion") == 1:
        raise RegistryError(
            f"{image} has a manifest of version 1, which engines no longer pull. Push the image again with a "
            "present version of docker or podman."
        )
    if not isinstance(config, Mapping) or not isinstance(layers, list) or not layers:
        raise RegistryError(f"{image} is no container image: its manifest names no configuration and layers.")
    if config.get("mediaType") not in _CONFIG_TYPES:
        raise RegistryError(
            f"{image} is no container image, but {config.get('mediaType', 'something else')!s:.100}. Name an "
            "image that docker or podman can run."
        )
    if len(layers) > MAX_LAYERS:
        raise RegistryError(f"{image} has more than {MAX_LAYERS} layers.")
    return ImageManifest(_layer(config, image), tuple(_layer(layer, image) for layer in layers))


def _layer(entry: object, image: str) -> Layer:
    if not isinstance(entry, Mapping):
        raise RegistryError(f"The manifest of {image} is not readable.")
    size, media_type = entry.get("size"), str(entry.get("mediaType", ""))
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise RegistryError(f"The manifest of {image} names a layer without a size.")
    if any(word in media_type for word in _FOREIGN):
        raise RegistryError(f"{image} has layers that lie outside of its registry, which nodes do not fetch.")
    return Layer(_digest(entry, image), size, media_type)


def _digest(entry: Mapping[str, Any], image: str) -> str:
    digest = str(entry.get("digest", ""))
    if not DIGEST.match(digest):
        raise RegistryError(f"The manifest of {image} names a part without a SHA-256.")
    return digest
