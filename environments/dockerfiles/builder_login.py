"""The login of a registry for the node that builds an image from a Dockerfile."""

from __future__ import annotations

from environments.dockerfiles.checks import read_dockerfile
from environments.dockerfiles.source import login_registry, split_dockerfile
from environments.images.locking import take_login
from environments.models import EnvironmentVersion
from environments.states import EnvironmentKind


def builder_login(version: EnvironmentVersion, node: str) -> dict[str, str] | None:
    """Returns `registry`, `user`, `password`, and `secret`, the name of the secret that holds them; None if
    the version names no login. `node`: the name of the node that gets it, which is recorded. Raises
    RegistryError."""
    if version.kind != EnvironmentKind.DOCKERFILE:
        return None
    source = split_dockerfile(version.source)
    if not source.registry_secret:
        return None
    login = take_login(version, source.registry_secret, node)
    return {
        "registry": login_registry(read_dockerfile(source.dockerfile)),
        "user": login.user,
        "password": login.password,
        "secret": login.secret,
    }
