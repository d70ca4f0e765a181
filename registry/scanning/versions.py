"""Scans the files of versions and stores the verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from registry.models import ModelFile, ModelVersion, ReferencedFile
from registry.scanning.verdict_names import NOT_SCANNED, RULES, worst
from trainhub_launch.json_types import JsonObject
from workspaces.stored_files import blob_cache, blobs

# The tag of a version that tells MLflow's clients its verdict; they cannot set it.
TAG = "trainhub.scan"

# For this long the task that registering has sent has time to scan the version itself.
MISSED_AFTER = timedelta(seconds=60)
MAX_AT_ONCE = 20
# For one version, all files together.
MAX_S = 900

# Nothing that is secret reaches the process that reads strangers' files.
# OpenBLAS, which NumPy loads, reserves address space for each of its threads; that counts against the memory
# limit.
BARE = {"PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1"}

Scan = dict[str, dict[str, Any]]
_at_it = threading.Lock()


def scan(version_id: int) -> bool:
    """Scans the version, unless the present rules have been applied to it already.

    Returns False if another thread is scanning; `scan_missed` then does it later. Only one version is scanned
    at a time, so that slow ones leave the worker its other threads, which launch and end runs.
    """
    if not _at_it.acquire(blocking=False):
        return False
    try:
        _scan(version_id)
    finally:
        _at_it.release()
    return True


def _scan(version_id: int) -> None:
    version = _due().filter(pk=version_id).first()
    if version is None:
        return
    # Outside of the transaction: it may take MAX_S seconds.
    unread = {file.path: _unread(file) for file in version.referenced_files.all()}
    scan = verdicts(version.files.all()) | unread
    with transaction.atomic():
        # The tags are read again under the lock, as people may have changed them during the scan.
        fresh = ModelVersion.objects.select_for_update().filter(pk=version_id).first()
        if fresh is not None:
            fresh.scan, fresh.tags = scan, {**fresh.tags, TAG: verdict_of(scan)}
            ModelVersion.objects.filter(pk=version_id).update(
                scan=fresh.scan, tags=fresh.tags, scan_rules=RULES
            )


def _due() -> QuerySet[ModelVersion]:
    """Return the versions that were never scanned, or by older rules. Those that have no files yet are not
    due."""
    due = ModelVersion.objects.filter(Q(scan__isnull=True) | Q(scan_rules__lt=RULES))
    return due.filter(ModelVersion.has_files())


def scan_missed() -> None:
    """Scans versions that were missed or that older rules judged. The newest come first, because people look
    at those."""
    waiting = _due().filter(created_at__lt=timezone.now() - MISSED_AFTER)
    for version_id in list(waiting.order_by("-pk").values_list("pk", flat=True)[:MAX_AT_ONCE]):
        if not scan(version_id):
            return


def verdict_of(scan: Scan) -> str:
    return worst(item["verdict"] for item in scan.values())


def verdicts(files: Iterable[ModelFile]) -> Scan:
    """Returns path -> {"verdict", "findings", "note"} of the files."""
    scan: Scan = {}
    waiting: list[ModelFile] = []
    for file in files:
        if not blobs.exists(file.sha256):
            scan[file.path] = _entry(NOT_SCANNED, "Its bytes are missing on the hub.")
        else:
            waiting.append(file)
    stop_at = time.monotonic() + MAX_S
    while waiting:
        if time.monotonic() > stop_at:
            # Each of thousands of files may have been made to hold up the worker for as long as one may take.
            late = _entry(NOT_SCANNED, "The scanner took too long for the files before it.")
            return scan | {file.path: late for file in waiting}
        read = _read(waiting)
        scan |= {file.path: entry for file, entry in zip(waiting, read, strict=False)}
        waiting = waiting[len(read) :]
    return scan


def _unread(file: ReferencedFile) -> JsonObject:
    return _entry(NOT_SCANNED, f"It was not scanned: it lies in a datastore, at {file.place}")


def _read(files: list[ModelFile]) -> list[dict[str, Any]]:
    """Returns the verdicts on the first files, at least on one. If the process dies, the file at which it
    died is `not_scanned`."""
    listed = [[str(blob_cache.local_path(file.sha256)), file.path] for file in files]
    seconds = settings.MODEL_SCAN_SECONDS
    order = (
        json.dumps({"files": listed, "seconds": seconds, "memory_bytes": settings.MODEL_SCAN_MEMORY_BYTES})
        + "\n"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-m", "registry.scanning.child"],
            input=order,
            capture_output=True,
            text=True,
            check=False,
            cwd=settings.BASE_DIR,
            env=BARE,
            # The process itself ends each file after `seconds`; this limit is for one that no signal
            # interrupts.
            timeout=min(MAX_S, seconds * len(files) + 30),
        )
        output, note = done.stdout, "The scanner failed at this file."
    except subprocess.TimeoutExpired as error:
        output, note = _text(error.stdout), "The scanner took too long."
    # The last line may be cut off if the process was killed.
    entries = [json.loads(line)[1] for line in output.splitlines() if line.endswith("}]")]
    return entries if len(entries) == len(files) else [*entries, _entry(NOT_SCANNED, note)]


def _text(data: bytes | str | None) -> str:
    # TimeoutExpired holds bytes even though the process was started with text=True.
    return data.decode(errors="replace") if isinstance(data, bytes) else data or ""


def _entry(verdict: str, note: str) -> JsonObject:
    return {"verdict": verdict, "findings": [], "note": note}
