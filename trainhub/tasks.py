"""Housekeeping of the installation as a whole."""

from __future__ import annotations

import logging

from celery import shared_task
from django.core.management import call_command

from jobs import purging
from jobs.bytes import uploads as pieces
from tracking.artifacts import uploads as parts
from tracking.purging import purge_logged_models
from tracking.usage import accounting
from workspaces import sweeping
from workspaces.stored_files import sealing

log = logging.getLogger(__name__)


@shared_task(ignore_result=True)
def clear_sessions() -> None:
    call_command("clearsessions")


@shared_task(ignore_result=True)
def purge() -> None:
    """Also asked for at once, by name, where an owner deletes a run for good (jobs.queueing)."""
    purging.purge_due(before=accounting.settle)
    purge_logged_models()


@shared_task(ignore_result=True)
def seal_blobs() -> None:
    """Once after an upgrade: what earlier versions have stored becomes read-only."""
    sealing.seal_old()


@shared_task(ignore_result=True)
def sweep_blobs() -> None:
    """Free files that no source, output or model names (any more), and uploads that were given up."""
    gone = sweeping.sweep()
    if gone:
        log.info("%s stored files that nothing names are deleted", gone)
    forgotten = pieces.sweep() + parts.sweep()
    if forgotten:
        log.info("%s uploads that nobody went on with are deleted", forgotten)
