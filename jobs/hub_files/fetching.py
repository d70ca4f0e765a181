"""Fetches the files of versions that nobody has needed yet, in threads of the worker. Each file that has come
stays: whatever interrupts this, the next attempt fetches the others."""

from __future__ import annotations

import logging
import shutil
import threading
from datetime import timedelta

from django.conf import settings
from django.db import connections
from django.db.models import F, Q
from django.utils import timezone

from environments.models import EnvironmentVersion
from environments.states import EnvironmentKind
from jobs.hub_files.fetch_orders import order_fetches
from jobs.hub_files.file_queue import FileQueue, LayerFile, PackageToFetch
from jobs.hub_files.models import FileFetch
from jobs.hub_files.states import FetchState
from jobs.hub_files.stored_parts import missing_layers, missing_packages
from jobs.quotas import disk_quota
from trainhub_launch.scheduler.sizes import bytes_text

log = logging.getLogger(__name__)
# Versions of this process.
MAX_FETCHES_AT_ONCE = 2
REPORT_INTERVAL_S = 2.0
# Since the last report: the worker has died.
ABANDONED_AFTER = timedelta(seconds=60)
MAX_ATTEMPTS = 5
# Of the hub's disk; what nodes and runs send must still find room.
MIN_FREE_BYTES = 2 * 2**30

_slots = threading.BoundedSemaphore(MAX_FETCHES_AT_ONCE)


def start_fetching() -> None:
    """Begins what is due, in a thread: it may take hours. Does nothing if this process fetches enough
    others: one of those threads takes it next."""
    order_fetches()
    if _next_due() is None or not _slots.acquire(blocking=False):
        return
    # Not waited for when the worker ends.
    threading.Thread(target=_fetch_in_thread, name="hub-files", daemon=True).start()


def fetch_due() -> None:
    """Fetches the files of one version after another until none waits."""
    while (fetch := _claim()) is not None:
        try:
            failure = _fetch(fetch)
        except Exception:
            log.exception("Fetching the files of %s failed", fetch.version)
            failure = "The hub itself failed at it; an operator finds the reason in its log."
        FileFetch.objects.filter(pk=fetch.pk).update(
            state=FetchState.FAILED if failure else FetchState.FETCHED, failure=failure, arriving_bytes=0
        )


def _fetch_in_thread() -> None:
    try:
        fetch_due()
    finally:
        _slots.release()
        connections.close_all()


def _next_due() -> FileFetch | None:
    due = FileFetch.objects.filter(_is_due()).select_related("version__environment__workspace")
    return due.order_by("ordered_at").first()


def _is_due() -> Q:
    abandoned = Q(state=FetchState.FETCHING, reported_at__lt=timezone.now() - ABANDONED_AFTER)
    return Q(state=FetchState.WAITING) | abandoned


def _claim() -> FileFetch | None:
    while (fetch := _next_due()) is not None:
        # Of two workers, only the one that changes the row fetches.
        due = FileFetch.objects.filter(_is_due(), pk=fetch.pk)
        if due.update(state=FetchState.FETCHING, attempts=F("attempts") + 1, reported_at=timezone.now()):
            fetch.attempts += 1
            return fetch
    return None


def _fetch(fetch: FileFetch) -> str:
    """Returns why not all files could be fetched, or ""."""
    version = fetch.version
    if fetch.attempts > MAX_ATTEMPTS:
        return "The hub was interrupted each time it fetched them."
    files = _missing(version)
    size = sum(file.size for file in files)
    if refusal := _room_refusal(version, size):
        return refusal
    queue = FileQueue(files, max_failures=1 if version.kind == EnvironmentKind.IMAGE else 3)
    queue.start()
    while not queue.wait(REPORT_INTERVAL_S):
        rows = FileFetch.objects.filter(pk=fetch.pk, state=FetchState.FETCHING)
        if not rows.update(reported_at=timezone.now(), arriving_bytes=queue.arriving_bytes):
            # The version was deleted.
            queue.stop()
    return queue.failure


def _missing(version: EnvironmentVersion) -> list[LayerFile | PackageToFetch]:
    if version.kind == EnvironmentKind.IMAGE:
        return [LayerFile(version, layer) for layer in missing_layers(version)]
    return [PackageToFetch(file) for file in missing_packages(version)]


def _room_refusal(version: EnvironmentVersion, size: int) -> str:
    """Returns why the hub has no room for so many bytes more, or ""."""
    free = shutil.disk_usage(settings.DATA_DIR).free
    if free - size < MIN_FREE_BYTES:
        return (
            f"The disk of the hub has {bytes_text(free)} free, too little for {bytes_text(size)} more. An "
            "operator frees space in its data folder."
        )
    if version.kind != EnvironmentKind.IMAGE:
        # Packages belong to nobody.
        return ""
    try:
        disk_quota.check_room(version.environment.owner, version.created_by, size, field="file")
    except disk_quota.DiskQuotaExceeded as error:
        return f"{error.message[:1].upper()}{error.message[1:]}."
    return ""
