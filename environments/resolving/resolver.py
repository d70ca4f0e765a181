"""Resolves versions of environments, and stores their locks or why there is none."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

from django.db.models import F, Q
from django.utils import timezone

from environments.lock_file import restrict_hashes
from environments.models import EnvironmentVersion
from environments.requirement_list import read_requirements
from environments.resolving.explanations import explain
from environments.resolving.index_policy import IndexRefused, check_index
from environments.resolving.index_settings import index_variables
from environments.resolving.uv_process import MAX_S, PLATFORMS, run_uv
from environments.states import VersionState

log = logging.getLogger(__name__)
MAX_AT_ONCE = 2
MAX_ATTEMPTS = 3
# The worker has died: for each platform, uv is ended after MAX_S seconds.
ABANDONED_AFTER = timedelta(seconds=len(PLATFORMS) * MAX_S + 60)

_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


class _Unresolvable(Exception):
    """The message is a sentence for the person who made the version."""


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
        values = {"state": VersionState.LOCKED, "lock": _lock(version)}
    except _Unresolvable as error:
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


def _lock(version: EnvironmentVersion) -> str:
    if version.attempts > MAX_ATTEMPTS:
        raise _Unresolvable("The hub was interrupted each time it resolved this version. Make it again.")
    source = read_requirements(version.requirements)
    try:
        for url in filter(None, (source.index_url, *source.extra_index_urls)):
            check_index(url)
    except IndexRefused as error:
        raise _Unresolvable(f"{error}.") from error
    text = "\n".join((*source.requirements, ""))
    resolution = run_uv(text, version.python, index_variables(source))
    if resolution.is_timeout:
        raise _Unresolvable(
            f"Resolving took more than {MAX_S} seconds. Pin versions, such as torch==2.13.0, or try again."
        )
    if not resolution.lock:
        raise _Unresolvable(explain(resolution.message, version.python))
    try:
        lock = restrict_hashes(resolution.lock, source.hashes)
    except KeyError as error:
        raise _Unresolvable(
            f"None of the hashes that the requirements give for {error.args[0]} is that of a file on the "
            "index. Correct them, or remove them."
        ) from error
    return "\n".join((*source.index_lines, lock))
