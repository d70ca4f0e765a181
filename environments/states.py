"""The kinds of environments, and the states of their versions."""

from __future__ import annotations

from enum import StrEnum


class EnvironmentKind(StrEnum):
    """How a version is described. PIP: by requirements, which the hub resolves to a lock. CONDA: by the YAML
    of conda, likewise. IMAGE: by the reference of a container image."""

    PIP = "pip"
    CONDA = "conda"
    IMAGE = "image"


class VersionState(StrEnum):
    """RESOLVING -> LOCKED | FAILED. Only a locked version can be used by a run."""

    RESOLVING = "resolving"
    LOCKED = "locked"
    FAILED = "failed"
