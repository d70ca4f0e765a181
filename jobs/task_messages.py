"""Messages to the worker and to nodes, sent once the transaction has committed.

A lost message delays the work by seconds: the reaper launches queued runs as well, and the answer to a node's
report holds the same orders as a wake-up.
"""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.db import transaction

from clusters import wakeups
from clusters.models import Node
from clusters.task_messages import send_task_soon
from workspaces.task_names import TaskName


def launch_run_soon(run_id: str) -> None:
    """Launches this run, which has just been queued, once the transaction has committed."""
    send_task_soon(TaskName.LAUNCH_RUN, run_id)


def launch_soon() -> None:
    """Launches queued runs once the transaction has committed, because resources have become free."""
    send_task_soon(TaskName.LAUNCH_QUEUED)


def cancel_outside_soon(run_id: str) -> None:
    """Takes the run out of the queues outside of the hub once the transaction has committed."""
    send_task_soon(TaskName.CANCEL_OUTSIDE, run_id)


def purge_soon() -> None:
    """Purges what is due once the transaction has committed."""
    send_task_soon(TaskName.PURGE)


def trace_soon(run_id: str) -> None:
    """Sends the trace of the run, which is over, once the transaction has committed, if somebody wants
    traces. No periodic task does the same: a lost message loses a trace."""
    if settings.SENDS_TRACES:
        send_task_soon(TaskName.SEND_TRACE, run_id)


def wake_soon(node: Node, run_id: str, attempt: int) -> None:
    """Wakes the node once the transaction has committed, so that it reports and gets its orders."""
    transaction.on_commit(partial(wakeups.wake, node, run_id, attempt), robust=True)
