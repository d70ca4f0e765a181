"""Versions that are locked without a resolver."""

from __future__ import annotations

from environments import changes
from environments.models import EnvironmentVersion
from environments.states import VersionState
from workspaces.access import Principal

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


def failed(
    who: Principal, name: str = "mine", failure: str = "No index has a package x."
) -> EnvironmentVersion:
    """Returns the next version, which could not be resolved."""
    version = changes.create_version(who, name, "pip", "x", "3.11")
    EnvironmentVersion.objects.filter(pk=version.pk).update(state=VersionState.FAILED, failure=failure)
    version.refresh_from_db()
    return version
