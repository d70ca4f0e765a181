"""Messages to the worker, sent once the transaction has committed.

A lost message delays the work by seconds: each such task has a periodic one that does the same."""

from __future__ import annotations

import logging
import time
from functools import partial

import celery
from django.db import transaction
from kombu.exceptions import KombuError

from workspaces.task_names import SENT_AT, TaskName

log = logging.getLogger(__name__)
RETRY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}


def send_task_soon(task: TaskName, *args: int | str) -> None:
    """Sends the task to the worker once the transaction has committed; a periodic task does the same
    later."""
    transaction.on_commit(partial(_send, task, *args), robust=True)


def _send(task: TaskName, *args: int | str) -> None:
    app = celery.current_app
    # Errors of the broker's own client library, after which a new connection may succeed.
    client_errors = app.connection_for_write().recoverable_connection_errors
    try:
        headers = {SENT_AT: time.time()}
        app.send_task(task, args=args, headers=headers, ignore_result=True, retry=True, retry_policy=RETRY)
    except (KombuError, OSError, *client_errors) as error:  # type: ignore[misc]
        log.warning(
            "The task %s could not be sent to the worker: %s. The next periodic run does its work.",
            task,
            error,
        )
