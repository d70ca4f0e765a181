"""Small container images that the test makes itself, and their way to a registry."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


@dataclass(frozen=True)
class MadeImage:
    """`manifest`: the bytes that `digest` names. `blobs`: by digest; `children`: manifests of an index."""

    manifest: bytes
    media_type: str = MANIFEST
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    children: tuple[MadeImage, ...] = ()

    @property
    def digest(self) -> str:
        return digest_of(self.manifest)


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def make_image(
    files: Mapping[str, bytes], *, architecture: str = "amd64", environment: tuple[str, ...] = ("PATH=/bin",)
) -> MadeImage:
    """An image of one layer for each file."""
    layers = [_layer({path: content}) for path, content in files.items()]
    config = json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": [*environment], "WorkingDir": "/work", "Entrypoint": ["/bin/start"]},
            "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]},
        }
    ).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _part(config, CONFIG),
        "layers": [_part(layer, LAYER) for layer in layers],
    }
    blobs = {digest_of(data): data for data in (config, *layers)}
    return MadeImage(json.dumps(manifest).encode(), MANIFEST, blobs)


def make_index(*images: tuple[str, MadeImage]) -> MadeImage:
    """An index of images by architecture."""
    entries = [
        {**_part(image.manifest, MANIFEST), "platform": {"os": "linux", "architecture": architecture}}
        for architecture, image in images
    ]
    content = {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}
    return MadeImage(json.dumps(content).encode(), INDEX, children=tuple(image for _, image in images))


def push(address: str, repository: str, tag: str, image: MadeImage, login: tuple[str, str]) -> None:
    """Pushes the image to the registry at `address`, an URL."""
    with httpx.Client(base_url=f"{address}/v2/{repository}", auth=login, trust_env=False) as client:
        _push(client, tag, image)


def _push(client: httpx.Client, tag: str, image: MadeImage) -> None:
    for child in image.children:
        _push(client, child.digest, child)
    for digest, data in image.blobs.items():
        begun = client.post("/blobs/uploads/").raise_for_status()
        target = httpx.URL(begun.headers["location"])
        client.put(target.copy_merge_params({"digest": digest}), content=data).raise_for_status()
    headers = {"Content-Type": image.media_type}
    client.put(f"/manifests/{tag}", content=image.manifest, headers=headers).raise_for_status()


def _layer(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(content), 0o755
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def _part(data: bytes, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest_of(data), "size": len(data)}
