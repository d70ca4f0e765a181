"""Makes the lock of a version of kind `image` by asking the registry."""

from __future__ import annotations

from environments.images import image_store
from environments.images.image_lock import MAX_CONFIG_BYTES, ImageLock, make_image_lock
from environments.images.manifest import platform_digest, read_manifest
from environments.images.reference import ImageReference
from environments.images.registry_client import RegistryClient
from environments.images.registry_error import RegistryError
from environments.images.registry_login import RegistryLogin, login_of
from environments.images.source import read_image_source
from environments.models import EnvironmentVersion
from workspaces.secrets import uses
from workspaces.secrets.errors import SecretsUnavailable


def lock_image(version: EnvironmentVersion) -> ImageLock:
    """Returns what the reference means at present, and stores its manifest and configuration. Raises
    RegistryError."""
    source = read_image_source(version.source)
    reference = source.reference
    client = RegistryClient(reference, read_login(version))
    manifest = client.manifest(reference.requested)
    chosen = platform_digest(manifest, str(reference))
    if chosen is not None:
        manifest = client.manifest(chosen)
    config_blob = read_manifest(manifest, str(reference)).config
    config = client.blob(config_blob.digest, MAX_CONFIG_BYTES)
    lock = make_image_lock(str(reference), manifest, manifest.media_type, config)
    for data in (manifest.data, config):
        image_store.store(version, data)
    return lock


def read_login(version: EnvironmentVersion) -> RegistryLogin | None:
    """Returns the login for the registry of the version, or None if its source names none. Raises
    RegistryError."""
    secret = read_image_source(version.source).registry_secret
    return take_login(version, secret) if secret else None


def take_login(version: EnvironmentVersion, secret: str, node: str = "") -> RegistryLogin:
    """Returns the login in the secret, and records its use. Only secrets of the workspace count, whoever
    makes the version: its runs are everybody's. `node`: the name of the node that gets it, "" for the hub
    itself. Raises RegistryError."""
    workspace = version.environment.owner
    try:
        value = uses.take(workspace, None, [secret], uses.ENVIRONMENT, str(version), node)[secret]
    except uses.MissingSecret as error:
        raise RegistryError(
            f"There is no secret {secret} of the workspace {workspace}. An owner stores it under Settings, "
            "Secrets, for the workspace, with user:password as its value."
        ) from error
    except SecretsUnavailable as error:
        raise RegistryError(f"The login of the registry cannot be read: {error.message}.") from error
    return login_of(value, secret)


def pinned_reference(reference: ImageReference, digest: str, registry: str) -> str:
    """Returns the name by which engines pull exactly this image without the hub. `registry`: the team's own,
    HOST/FOLDER, or "" for the one of the reference."""
    prefix = registry.strip("/")
    name = reference.name
    if prefix and not f"{name}/".startswith(f"{prefix}/"):
        name = f"{prefix}/{reference.repository}"
    return f"{name}@{digest}"
