"""Which kinds of environments name the login of a registry."""

from __future__ import annotations

from environments.dockerfiles.source import split_dockerfile
from environments.images.source import split_source
from environments.states import EnvironmentKind


def registry_secret_of(kind: str, source: str) -> str:
    """Returns the name of the secret with the login of a registry that a source names, or ""."""
    if kind == EnvironmentKind.IMAGE:
        return split_source(source).registry_secret
    return split_dockerfile(source).registry_secret if kind == EnvironmentKind.DOCKERFILE else ""
