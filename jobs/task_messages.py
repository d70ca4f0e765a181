"""Messages to the worker and to nodes, sent once the transaction has committed.

A lost message delays the work by seconds: the reaper launches queued runs as well, and the answer to a node's
report holds the same orders as a wake-up.
"""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from clusters import wakeups
from clusters.models import Node
from clusters.task_messages import send_task_soon
from jobs.models import Run
from jobs.states import RunState
from workspaces.database.compiled_queries import compiled
from workspaces.task_names import TaskName


def launch_run_soon(run_id: str) -> None:
    """Launches this run, which has just been queued, once the transaction has committed."""
    send_task_soon(TaskName.LAUNCH_RUN, run_id)


def launch_soon() -> None:
    """Launches queued runs once the transaction has committed, because resources have become free.

    Sends nothing if no run waits then, as mostly: a run that comes later is launched by a message of its own,
    and finds what has become free."""
    transaction.on_commit(_launch_waiting, robust=True)


def _launch_waiting() -> None:
    if _waiting():
        send_task_soon(TaskName.LAUNCH_QUEUED)


@compiled
def _waiting() -> QuerySet[Run, tuple[str]]:
    return Run.objects.filter(state=RunState.QUEUED).order_by().values_list("pk")[:1]


def cancel_outside_soon(run_id: str) -> None:
    """Takes the run out of the queues outside of the hub once the transaction has committed."""
    send_task_soon(TaskName.CANCEL_OUTSIDE, run_id)


def retention_soon() -> None:
    """Removes what retention rules say once the transaction has committed."""
    send_task_soon(TaskName.APPLY_RETENTION)


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
