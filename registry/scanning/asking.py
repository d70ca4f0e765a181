"""Having a version scanned: soon by the worker, and by its periodic twin where that message was lost."""

from __future__ import annotations

import logging
from functools import partial

import celery
from django.db import transaction
from kombu.exceptions import KombuError

log = logging.getLogger(__name__)
RETRY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}


def scan_soon(version: int) -> None:
    """Once this transaction has committed."""
    transaction.on_commit(partial(_send, version), robust=True)


def _send(version: int) -> None:
    app = celery.current_app
    try:
        app.send_task("registry.tasks.scan_version", args=[version], ignore_result=True, retry=True, retry_policy=RETRY)
    except (KombuError, OSError, *app.connection_for_write().recoverable_connection_errors) as error:
        log.warning("The worker could not be told to scan a model: %s. The next tick does it.", error)
