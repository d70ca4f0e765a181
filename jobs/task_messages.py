"""Messages to the worker and to nodes, sent once the transaction has committed.

A lost message delays the work by seconds: the reaper launches queued runs as well, and the answer to a node's
report holds the same orders as a wake-up.
"""

from __future__ import annotations

import logging
from functools import partial

import celery
from django.db import transaction
from kombu.exceptions import KombuError

from clusters import wakeups
from clusters.models import Node

log = logging.getLogger(__name__)
RETRY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}


def launch_run_soon(run_id: str) -> None:
    """Launches this run, which has just been queued, once the transaction has committed."""
    send_task_soon("jobs.tasks.launch_run", run_id)


def launch_soon() -> None:
    """Launches queued runs once the transaction has committed, because resources have become free."""
    send_task_soon("jobs.tasks.launch_queued")


def purge_soon() -> None:
    """Purges what is due once the transaction has committed."""
    send_task_soon("trainhub.tasks.purge")


def send_task_soon(task: str, *args: int | str) -> None:
    """Sends the task to the worker once the transaction has committed; a periodic task does the same
    later."""
    transaction.on_commit(partial(_send, task, *args), robust=True)


def wake_soon(node: Node, run_id: str, attempt: int) -> None:
    """Wakes the node once the transaction has committed, so that it reports and gets its orders."""
    transaction.on_commit(partial(wakeups.wake, node, run_id, attempt), robust=True)


def _send(task: str, *args: int | str) -> None:
    app = celery.current_app
    try:
        app.send_task(task, args=args, ignore_result=True, retry=True, retry_policy=RETRY)
    except (KombuError, OSError, *app.connection_for_write().recoverable_connection_errors) as error:
        log.warning(
            "The task %s could not be sent to the worker: %s. The next periodic run does its work.",
            task,
            error,
        )
