"""Locks requirements, with a node's help where packages have to be built from source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from environments.errors import NeedsNode, Unresolvable
from environments.models import BuiltWheel, EnvironmentVersion
from environments.requirement_list import RequirementList
from environments.resolving.requirements import resolve_requirements
from environments.source_builds.built_wheels import (
    BuildRecord,
    UploadedWheel,
    accept_wheels,
    reuse_wheels,
)
from environments.source_builds.draft import read_wheel_draft
from environments.source_builds.planning import plan_source_builds, source_packages
from environments.states import VersionState
from workspaces.stored_files import blob_cache, blobs


def lock_requirements(version: EnvironmentVersion, requirements: RequirementList) -> str:
    """Returns the lock. Raises Unresolvable, and NeedsNode if a node must build a package first."""
    names = source_packages(requirements)
    if not names:
        return resolve_requirements(version, requirements)
    draft = plan_source_builds(version, requirements, names)
    lock = reuse_wheels(version, draft)
    if not lock:
        raise NeedsNode(draft.to_json())
    return lock


def has_built_wheel(version: EnvironmentVersion, sha256: str) -> bool:
    """Returns whether the version's workspace has built this wheel before."""
    own = BuiltWheel.objects.filter(workspace=version.environment.workspace_id, sha256=sha256)
    return own.exists() and blobs.hold(sha256)


def lock_earlier_wheels(version: EnvironmentVersion) -> str:
    """Returns the lock if the workspace has built all wheels of the version's draft meanwhile, else ""."""
    return reuse_wheels(version, read_wheel_draft(version.draft))


def is_built_for_other(version: EnvironmentVersion) -> bool:
    """Returns whether an earlier version of the workspace waits for one of the same wheels."""
    earlier = EnvironmentVersion.objects.filter(
        environment__workspace=version.environment.workspace_id,
        environment__deleted_at=None,
        state=VersionState.BUILDING,
        kind=version.kind,
        pk__lt=version.pk,
    )
    keys = _build_keys(version.draft)
    return any(keys & _build_keys(draft) for draft in earlier.values_list("draft", flat=True))


def _build_keys(draft: str) -> frozenset[str]:
    return frozenset(package.build_key for package in read_wheel_draft(draft).packages)


def lock_built_wheels(
    version: EnvironmentVersion, result: Mapping[str, Any], files: Mapping[str, int]
) -> str:
    """Returns the lock with the wheels that a node has uploaded. Raises Unresolvable."""
    record = BuildRecord(*(str(result.get(name, "")) for name in ("build", "node", "glibc")))
    draft = read_wheel_draft(version.draft)
    return accept_wheels(version, draft, tuple(_uploaded(version, result, files)), record)


def _uploaded(
    version: EnvironmentVersion, result: Mapping[str, Any], files: Mapping[str, int]
) -> Iterator[UploadedWheel]:
    """Yields the wheels of the result that are really there: uploaded for it, or built in the workspace."""
    items = result.get("wheels")
    for item in items if isinstance(items, list) else ():
        filename, sha256 = (
            str(item.get(key, "")) if isinstance(item, Mapping) else "" for key in ("filename", "sha256")
        )
        if not blobs.SHA256.match(sha256) or (sha256 not in files and not has_built_wheel(version, sha256)):
            raise Unresolvable(f"The wheel {filename:.100} was not uploaded. Build the version again.")
        blobs.hold(sha256)
        yield UploadedWheel(filename, sha256, blob_cache.size_of(sha256))
