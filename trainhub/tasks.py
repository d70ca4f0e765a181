"""Housekeeping of the installation as a whole."""

from __future__ import annotations

import logging
import time

from celery import shared_task
from django.core.management import call_command

from jobs.models import Artifact, Snapshot
from registry.models import ModelFile
from workspaces import blobs

log = logging.getLogger(__name__)
KEEP_UNNAMED_S = 7 * 86400.0
"""A node uploads a file before it can say which run it belongs to, and may be cut off in between."""


@shared_task(ignore_result=True)
def clear_sessions() -> None:
    call_command("clearsessions")


@shared_task(ignore_result=True)
def sweep_blobs() -> None:
    """Free what deleted runs left: files that no source, output or model names any more."""
    named = {sha256 for model in (Snapshot, Artifact, ModelFile) for sha256 in model.objects.values_list("sha256", flat=True)}
    gone = blobs.sweep(named, older_than=time.time() - KEEP_UNNAMED_S)
    if gone:
        log.info("%s stored files that nothing names any more are deleted", gone)
