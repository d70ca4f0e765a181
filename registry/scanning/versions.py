"""Scanning a version's files and keeping what was found."""

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
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from registry.models import ModelFile, ModelVersion
from registry.scanning.verdict_names import NOT_SCANNED, RULES, worst
from workspaces.stored_files import blobs

TAG = "trainhub.scan"
"""The tag of a version that tells MLflow's clients its verdict; they cannot set it."""

MISSED_AFTER = timedelta(seconds=60)
MOST_AT_ONCE = 20
MOST_S = 900
"""For one version, all files together."""

BARE = {"PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1"}
"""Nothing that is secret reaches the process that reads strangers' files."""

Scan = dict[str, dict[str, Any]]
_at_it = threading.Lock()


def scan(version_id: int) -> bool:
    """Scan that version, unless the present rules have been applied to it already.

    Returns False where another thread scans now; `scan_missed` does it later then.

    One at a time: a slow version must leave the worker its other threads, which launch runs and end them.
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
    found = verdicts(list(version.files.all()))
    with transaction.atomic():
        fresh = ModelVersion.objects.select_for_update().filter(pk=version_id).first()
        if fresh is not None:
            fresh.scan, fresh.tags = found, {**fresh.tags, TAG: verdict_of(found)}
            ModelVersion.objects.filter(pk=version_id).update(
                scan=fresh.scan, tags=fresh.tags, scan_rules=RULES
            )


def _due() -> QuerySet[ModelVersion]:
    """Return the versions that were never scanned, or by older rules. Those that have no files yet are not
    due."""
    due = ModelVersion.objects.filter(Q(scan__isnull=True) | Q(scan_rules__lt=RULES))
    return due.filter(Exists(ModelFile.objects.filter(version=OuterRef("pk"))))


def scan_missed() -> None:
    """Scan what was missed, and again what older rules judged; the newest first, as people look at those."""
    waiting = _due().filter(created_at__lt=timezone.now() - MISSED_AFTER)
    for version_id in list(waiting.order_by("-pk").values_list("pk", flat=True)[:MOST_AT_ONCE]):
        if not scan(version_id):
            return


def verdict_of(found: Scan) -> str:
    return worst(item["verdict"] for item in found.values())


def verdicts(files: Iterable[ModelFile]) -> Scan:
    """Path -> {"verdict", "findings", "note"}."""
    found: Scan = {}
    waiting: list[ModelFile] = []
    for file in files:
        if not blobs.exists(file.sha256):
            found[file.path] = _told(NOT_SCANNED, "Its bytes are missing on the hub.")
        else:
            waiting.append(file)
    stop_at = time.monotonic() + MOST_S
    while waiting:
        if time.monotonic() > stop_at:
            # Each of thousands of files may have been made to hold up the worker for as long as one may take.
            late = _told(NOT_SCANNED, "The scanner took too long for the files before it.")
            return found | {file.path: late for file in waiting}
        read = _read(waiting)
        found |= {file.path: told for file, told in zip(waiting, read, strict=False)}
        waiting = waiting[len(read) :]
    return found


def _read(files: list[ModelFile]) -> list[dict[str, Any]]:
    """Of the first files, at least of one: where the process dies, the one at which it died cannot be
    scanned."""
    listed = [[str(blobs.path(file.sha256)), file.path] for file in files]
    seconds = settings.MODEL_SCAN_SECONDS
    asked = (
        json.dumps({"files": listed, "seconds": seconds, "memory_bytes": settings.MODEL_SCAN_MEMORY_BYTES})
        + "\n"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-m", "registry.scanning.child"],
            input=asked,
            capture_output=True,
            text=True,
            check=False,
            cwd=settings.BASE_DIR,
            env=BARE,
            timeout=min(MOST_S, seconds * len(files) + 30),
        )
        output, note = done.stdout, "The scanner broke off at this file."
    except subprocess.TimeoutExpired as error:
        output, note = _text(error.stdout), "The scanner took too long."
    told = [json.loads(line)[1] for line in output.splitlines() if line.endswith("}]")]
    return told if len(told) == len(files) else [*told, _told(NOT_SCANNED, note)]


def _text(data: bytes | str | None) -> str:
    return data.decode(errors="replace") if isinstance(data, bytes) else data or ""


def _told(verdict: str, note: str) -> dict[str, Any]:
    return {"verdict": verdict, "findings": [], "note": note}
