"""Versions that are locked without a resolver."""

from __future__ import annotations

from django.utils import timezone

from environments import changes, resolver
from environments.curated_versions import demand_curated
from environments.images.source import ImageSource
from environments.models import EnvironmentVersion
from environments.states import VersionState
from tests.people import make_owner, principal_of
from workspaces.access import Principal
from workspaces.secrets import store

LOCK = f"tinylib==1.0 \\\n    --hash=sha256:{'a' * 64}\n"


def locked(
    who: Principal,
    name: str = "mine",
    requirements: str = "tinylib",
    *,
    python: str = "3.11",
    lock: str = LOCK,
) -> EnvironmentVersion:
    """Returns the next version, locked."""
    version = changes.create_version(who, name, "pip", requirements, python)
    EnvironmentVersion.objects.filter(pk=version.pk).update(state=VersionState.LOCKED, lock=lock)
    version.refresh_from_db()
    return version


def locked_curated(name: str, lock: str = LOCK) -> EnvironmentVersion:
    """Returns the hub's version of a curated environment, locked."""
    version = demand_curated(name)
    EnvironmentVersion.objects.filter(pk=version.pk).update(
        state=VersionState.LOCKED,
        lock=lock,
        package_count=lock.count("=="),
        download_bytes=2 * 2**20,
        resolved_at=timezone.now(),
    )
    version.refresh_from_db()
    return version


def failed(
    who: Principal, name: str = "mine", failure: str = "No index has a package x."
) -> EnvironmentVersion:
    """Returns the next version, which could not be resolved."""
    version = changes.create_version(who, name, "pip", "x", "3.11")
    EnvironmentVersion.objects.filter(pk=version.pk).update(state=VersionState.FAILED, failure=failure)
    version.refresh_from_db()
    return version


def resolved_image(who: Principal, image: str, secret: str = "", name: str = "boxed") -> EnvironmentVersion:
    """Returns the next version of kind `image`, after the hub has asked the registry."""
    version = changes.create_version(who, name, "image", ImageSource(image, secret).text)
    resolver.resolve(version.pk)
    version.refresh_from_db()
    return version


def put_secret(name: str, value: str) -> str:
    """Stores a secret of the workspace and returns its name."""
    store.put(principal_of(make_owner()), name, value, store.WORKSPACE)
    return name


def resolved(who: Principal, requirements: str = "tinylib") -> EnvironmentVersion:
    """The version 1 of `mine`, locked by the hub itself."""
    version = changes.create_version(who, "mine", "pip", requirements, "3.11")
    resolver.resolve(version.pk)
    version.refresh_from_db()
    assert version.is_locked, version.failure
    return version
