"""Scanning a version's files and keeping what was found."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from registry.models import ModelFile, ModelVersion
from registry.scanning.reading import may_hold_pickle
from registry.scanning.words import CLEAN, UNSCANNED, worst
from workspaces import blobs

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
    """Scan that version, unless that has been done; False where another thread scans now, and `scan_missed` does it later.

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
    version = ModelVersion.objects.filter(pk=version_id, scan__isnull=True).first()
    if version is None:
        return
    found = verdicts(list(version.files.all()))
    with transaction.atomic():
        fresh = ModelVersion.objects.select_for_update().filter(pk=version_id).first()
        if fresh is not None:
            fresh.scan, fresh.tags = found, {**fresh.tags, TAG: verdict_of(found)}
            ModelVersion.objects.filter(pk=version_id).update(scan=fresh.scan, tags=fresh.tags)


def scan_missed() -> None:
    waiting = ModelVersion.objects.filter(scan__isnull=True, created_at__lt=timezone.now() - MISSED_AFTER)
    for version_id in list(waiting.order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE]):
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
            found[file.path] = _told(UNSCANNED, "Its bytes are missing on the hub.")
        elif may_hold_pickle(file.path, _head(blobs.path(file.sha256))):
            waiting.append(file)
        else:
            found[file.path] = _told(CLEAN, "")
    stop_at = time.monotonic() + MOST_S
    while waiting:
        if time.monotonic() > stop_at:
            # Each of thousands of files may have been made to hold up the worker for as long as one may take.
            return found | {file.path: _told(UNSCANNED, "The scanner took too long for the files before it.") for file in waiting}
        read = _read(waiting)
        found |= {file.path: told for file, told in zip(waiting, read, strict=False)}
        waiting = waiting[len(read) :]
    return found


def _read(files: list[ModelFile]) -> list[dict[str, Any]]:
    """Of the first files, at least of one: where the process dies, the one at which it died cannot be scanned."""
    listed = [[str(blobs.path(file.sha256)), file.path] for file in files]
    seconds = settings.MODEL_SCAN_SECONDS
    asked = json.dumps({"files": listed, "seconds": seconds, "memory_bytes": settings.MODEL_SCAN_MEMORY_BYTES}) + "\n"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "registry.scanning.child"], input=asked, capture_output=True, text=True, check=False,
            cwd=settings.BASE_DIR, env=BARE, timeout=min(MOST_S, seconds * len(files) + 30),
        )
        output, note = done.stdout, "The scanner broke off at this file."
    except subprocess.TimeoutExpired as error:
        output, note = _text(error.stdout), "The scanner took too long."
    told = [json.loads(line)[1] for line in output.splitlines() if line.endswith("}]")]
    return told if len(told) == len(files) else [*told, _told(UNSCANNED, note)]


def _text(data: bytes | str | None) -> str:
    return data.decode(errors="replace") if isinstance(data, bytes) else data or ""


def _told(verdict: str, note: str) -> dict[str, Any]:
    return {"verdict": verdict, "findings": [], "note": note}


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(8)
