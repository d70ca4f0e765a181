"""The states of versions that a node must make. Every change is guarded by the state that it is allowed from,
so that of two processes only one makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from clusters.task_messages import send_task_soon
from environments.errors import Unresolvable
from environments.kinds.all_kinds import kind_of, maker_of
from environments.lock_file import download_bytes
from environments.models import EnvironmentVersion
from environments.states import VersionState
from workspaces.task_names import TaskName

MAX_FAILURE_LENGTH = 4000


def await_node(version_id: int, draft: str) -> None:
    """Notes what a node is to do for the version, and has the worker order it."""
    resolving = EnvironmentVersion.objects.filter(pk=version_id, state=VersionState.RESOLVING)
    if resolving.update(state=VersionState.BUILDING, draft=draft):
        send_task_soon(TaskName.ADVANCE_VERSION, version_id)


def lock_with_result(
    version: EnvironmentVersion, result: Mapping[str, Any], files: Mapping[str, int]
) -> None:
    """Locks the version with what a node has made. `files`: the size of each file that it has uploaded for
    this, by SHA-256. Raises Unresolvable if the result is not what the version needs, or comes too late."""
    if not _lock(version, maker_of(version).accept_result(version, result, files)):
        raise Unresolvable(f"{version} waits for no result: somebody has canceled its build.")


def lock_with_earlier_result(version: EnvironmentVersion) -> bool:
    """Locks the version if other versions have brought all that it waits for. Returns whether it is so."""
    lock = maker_of(version).earlier_result(version)
    return bool(lock) and _lock(version, lock)


def _lock(version: EnvironmentVersion, lock: str) -> bool:
    packages = kind_of(version).locked_packages(lock)
    building = EnvironmentVersion.objects.filter(pk=version.pk, state=VersionState.BUILDING)
    changed_rows = building.update(
        state=VersionState.LOCKED,
        lock=lock,
        package_count=len(packages),
        download_bytes=download_bytes(packages),
        resolved_at=timezone.now(),
    )
    if changed_rows:
        wake_waiting_runs(version)
    return bool(changed_rows)


def fail_building(version: EnvironmentVersion, failure: str) -> None:
    """Marks the version as failed: no node makes it any more."""
    building = EnvironmentVersion.objects.filter(pk=version.pk, state=VersionState.BUILDING)
    building.update(
        state=VersionState.FAILED, failure=failure[:MAX_FAILURE_LENGTH], resolved_at=timezone.now()
    )
    wake_waiting_runs(version)


def wake_waiting_runs(version: EnvironmentVersion) -> None:
    """Has the worker look at the queue: runs wait for the version only if it is of a curated environment."""
    if version.environment.workspace_id is None:
        send_task_soon(TaskName.LAUNCH_QUEUED)


def await_node_again(version: EnvironmentVersion) -> None:
    """Lets a node make a version that has failed. The caller orders the build."""
    failed = EnvironmentVersion.objects.filter(pk=version.pk, state=VersionState.FAILED).exclude(draft="")
    failed.update(state=VersionState.BUILDING, failure="", resolved_at=None)
