"""Messages that leave once the transaction has committed. A lost one costs seconds, never the run.

The reaper's tick launches too, and the answer to a node's report says what a wake-up says.
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
    """Once this transaction has committed, have this run launched, which has just been queued."""
    send_task_soon("jobs.tasks.launch_run", run_id)


def launch_soon() -> None:
    """Once this transaction has committed, have queued runs launched: something that they wait for has become
    free."""
    send_task_soon("jobs.tasks.launch_queued")


def purge_soon() -> None:
    """Once this transaction has committed, have what is due for it deleted for good."""
    send_task_soon("trainhub.tasks.purge")


def send_task_soon(task: str, *args: int | str) -> None:
    """Once this transaction has committed, have the worker do what its periodic twin would do later."""
    transaction.on_commit(partial(_send, task, *args), robust=True)


def wake_soon(node: Node, run_id: str, attempt: int) -> None:
    """Have the node ask at once what is to be done about this attempt."""
    transaction.on_commit(partial(wakeups.wake, node, run_id, attempt), robust=True)


def _send(task: str, *args: int | str) -> None:
    app = celery.current_app
    try:
        app.send_task(task, args=args, ignore_result=True, retry=True, retry_policy=RETRY)
    except (KombuError, OSError, *app.connection_for_write().recoverable_connection_errors) as error:
        log.warning("The worker could not be told of %s: %s. The next tick does it.", task, error)
