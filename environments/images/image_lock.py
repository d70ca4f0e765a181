"""The lock of an environment of kind `image`: which manifest a reference meant when the version was made, and
what is known about that image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from environments.images.manifest import ARCHITECTURE, OS, Layer, read_json, read_manifest
from environments.images.registry_client import StoredManifest
from environments.images.registry_error import RegistryError
from trainhub_launch.findings.image import names_gpus

MAX_CONFIG_BYTES = 4 * 2**20
# Of the lock's text: labels can be long.
MAX_LABELS, MAX_LABEL_CHARS = 100, 500
MAX_VARIABLES = 500
# Of an image that a node has built from a Dockerfile: no registry has it.
BUILT = "localhost/environment"
# Variables of base images that say which software is inside, in the order in which pages show them.
_SOFTWARE = {
    "CUDA_VERSION": "CUDA",
    "NV_CUDNN_VERSION": "cuDNN",
    "NCCL_VERSION": "NCCL",
    "PYTHON_VERSION": "Python",
    "PYTORCH_VERSION": "PyTorch",
    "TENSORFLOW_VERSION": "TensorFlow",
    "OPENMPI_VERSION": "Open MPI",
}


@dataclass(frozen=True)
class ImageLock:
    """`reference`: with all that a short one leaves out. `digest`: of the manifest for linux/amd64;
    `image_id`: of its configuration, the same in every engine. `size`: of the layers as they are pulled, in
    bytes. `environment`: variables as NAME=value. `entrypoint` and `command`: what the image would run by
    itself; runs ignore both."""

    reference: str
    digest: str
    media_type: str
    manifest_size: int
    config: Layer
    layers: tuple[Layer, ...]
    architecture: str = ARCHITECTURE
    os: str = OS
    created: str = ""
    environment: tuple[str, ...] = ()
    working_dir: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_built(self) -> bool:
        """Returns whether a node has built it, so that only the hub has it."""
        return self.reference.startswith(f"{BUILT}:")

    @property
    def image_id(self) -> str:
        return self.config.digest

    @property
    def size(self) -> int:
        return sum({layer.digest: layer.size for layer in self.layers}.values())

    @property
    def variables(self) -> dict[str, str]:
        return {name: value for name, _, value in (item.partition("=") for item in self.environment)}

    @property
    def is_for_gpus(self) -> bool:
        """Returns whether the image says by its variables that it is made for GPUs."""
        return names_gpus(self.environment)

    @property
    def software(self) -> dict[str, str]:
        """Returns name -> version of the software that the image names in its variables."""
        variables = self.variables
        return {name: variables[key] for key, name in _SOFTWARE.items() if variables.get(key)}

    @property
    def blobs(self) -> dict[str, Layer]:
        """Returns everything that nodes pull besides the manifest, by digest."""
        return {layer.digest: layer for layer in (self.config, *self.layers)}

    @property
    def text(self) -> str:
        known = {
            "image_id": self.image_id,
            "size": self.size,
            "software": self.software,
        }
        return json.dumps({**asdict(self), **known}, indent=2, ensure_ascii=False)


def read_image_lock(text: str) -> ImageLock:
    data = json.loads(text)
    for name in ("image_id", "size", "software"):
        data.pop(name, None)
    data["config"] = Layer(**data["config"])
    data["layers"] = tuple(Layer(**layer) for layer in data["layers"])
    for name in ("environment", "entrypoint", "command"):
        data[name] = tuple(data[name])
    return ImageLock(**data)


def make_image_lock(reference: str, manifest: StoredManifest, media_type: str, config: bytes) -> ImageLock:
    """Raises RegistryError for an image that nodes cannot run."""
    content = read_json(config, f"The configuration of {reference}")
    platform = (str(content.get("os", "")), str(content.get("architecture", "")))
    if platform != (OS, ARCHITECTURE):
        raise RegistryError(
            f"{reference} is for {'/'.join(platform):.100}, and the nodes need linux/amd64. Take an image "
            "that was built for linux/amd64."
        )
    parsed = read_manifest(manifest, reference)
    lock = ImageLock(reference, manifest.digest, media_type, len(manifest.data), parsed.config, parsed.layers)
    settings = content.get("config")
    settings = settings if isinstance(settings, Mapping) else {}
    labels = settings.get("Labels")
    labels = labels if isinstance(labels, Mapping) else {}
    return replace(
        lock,
        created=str(content.get("created") or "")[:40],
        environment=_texts(settings.get("Env"))[:MAX_VARIABLES],
        working_dir=str(settings.get("WorkingDir") or ""),
        entrypoint=_texts(settings.get("Entrypoint")),
        command=_texts(settings.get("Cmd")),
        user=str(settings.get("User") or ""),
        labels={str(name): str(value)[:MAX_LABEL_CHARS] for name, value in [*labels.items()][:MAX_LABELS]},
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
