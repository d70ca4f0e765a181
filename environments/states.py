"""The kinds of environments, and the states of their versions."""

from __future__ import annotations

from enum import StrEnum


class EnvironmentKind(StrEnum):
    """How a version is described. PIP: by requirements, which the hub resolves to a lock. CONDA: by the YAML
    of conda, likewise. IMAGE: by the reference of a container image. DOCKERFILE: by a Dockerfile, from which
    a node makes an image."""

    PIP = "pip"
    CONDA = "conda"
    IMAGE = "image"
    DOCKERFILE = "dockerfile"


# Runs of these start in a container image.
IMAGE_KINDS = (EnvironmentKind.IMAGE, EnvironmentKind.DOCKERFILE)


class VersionState(StrEnum):
    """RESOLVING -> LOCKED | FAILED, or RESOLVING -> BUILDING -> LOCKED | FAILED where a node must run what
    the hub does not: code of others. A version that a node could not make can be built again. Only a locked
    version can be used by a run."""

    RESOLVING = "resolving"
    BUILDING = "building"
    LOCKED = "locked"
    FAILED = "failed"
