"""Resolves versions of environments, and stores their locks or why there is none."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

from django.db.models import F, Q
from django.utils import timezone

from clusters.task_messages import send_task_soon
from environments import made_versions
from environments.conda.solver_process import MAX_S as SOLVING_S
from environments.conda.solver_process import MAX_SOLUTIONS
from environments.errors import NeedsNode, Unresolvable
from environments.kinds.all_kinds import kind_of
from environments.lock_file import download_bytes
from environments.models import EnvironmentVersion
from environments.repositories.git_process import MAX_S as REPOSITORY_S
from environments.requirement_list import MAX_REPOSITORIES
from environments.resolving.uv_process import MAX_S, PLATFORMS
from environments.states import VersionState
from workspaces.task_names import TaskName

log = logging.getLogger(__name__)
MAX_AT_ONCE = 2
MAX_ATTEMPTS = 3
# The worker has died: for each platform, uv is ended after MAX_S seconds, and the solver of conda or the
# fetching of repositories before it.
BEFORE_UV_S = max(MAX_SOLUTIONS * SOLVING_S, MAX_REPOSITORIES * REPOSITORY_S)
ABANDONED_AFTER = timedelta(seconds=len(PLATFORMS) * MAX_S + BEFORE_UV_S + 60)

_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


def resolve(version_id: int) -> None:
    """Resolves the version, unless that is done or in progress, and then those that wait meanwhile. Does
    nothing if this process resolves enough others: one of those threads takes it next."""
    if not _slots.acquire(blocking=False):
        return
    try:
        _take_and_resolve(version_id)
        while (waiting := _next_due()) is not None:
            _take_and_resolve(waiting)
    finally:
        _slots.release()


def resolve_missed() -> None:
    """Resolves versions whose message was lost, or whose worker has died."""
    waiting = _next_due()
    if waiting is not None:
        resolve(waiting)


def _next_due() -> int | None:
    due = EnvironmentVersion.objects.filter(_is_due(), state=VersionState.RESOLVING)
    return due.order_by("created_at").values_list("pk", flat=True).first()


def _is_due() -> Q:
    return Q(started_at=None) | Q(started_at__lt=timezone.now() - ABANDONED_AFTER)


def _take_and_resolve(version_id: int) -> None:
    # Of two workers, only the one that changes the row resolves the version.
    changed_rows = EnvironmentVersion.objects.filter(
        _is_due(), pk=version_id, state=VersionState.RESOLVING
    ).update(started_at=timezone.now(), attempts=F("attempts") + 1)
    if not changed_rows:
        return
    version = EnvironmentVersion.objects.get(pk=version_id)
    try:
        lock = _lock(version)
        packages = kind_of(version).locked_packages(lock)
        values: dict[str, object] = {
            "state": VersionState.LOCKED,
            "lock": lock,
            "package_count": len(packages),
            "download_bytes": download_bytes(packages),
        }
    except NeedsNode as needed:
        made_versions.await_node(version_id, needed.draft)
        return
    except Unresolvable as error:
        values = {"state": VersionState.FAILED, "failure": str(error)}
    except Exception:
        log.exception("Resolving environment version %d failed", version_id)
        values = {
            "state": VersionState.FAILED,
            "failure": "The hub itself failed at this version; an operator finds the reason in its log.",
        }
    EnvironmentVersion.objects.filter(pk=version_id, state=VersionState.RESOLVING).update(
        **values, resolved_at=timezone.now()
    )
    made_versions.wake_waiting_runs(version)
    if values["state"] == VersionState.LOCKED:
        send_task_soon(TaskName.FETCH_FILES)


def _lock(version: EnvironmentVersion) -> str:
    if version.attempts > MAX_ATTEMPTS:
        raise Unresolvable("The hub was interrupted each time it resolved this version. Make it again.")
    return kind_of(version).make_lock(version)
