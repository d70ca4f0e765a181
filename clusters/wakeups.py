"""Wake-ups tell a node to fetch work at once. A lost one costs seconds only: reports bring the same work."""

from __future__ import annotations

import logging

import celery
from kombu.exceptions import KombuError

from clusters.models import Node

log = logging.getLogger(__name__)
TASK = "node.wake"
# One quick retry only: a lost wake-up costs a few seconds, but a submission waits for this call.
RETRY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}


def queue_of(node: Node) -> str:
    """Returns the name of the queue that the node's broker user may read (clusters.brokers)."""
    return f"node.{node.name}.wake"


def _broker_errors(app: celery.Celery) -> tuple[type[BaseException], ...]:
    """Returns the exceptions of the broker's client for lost connections and for error answers, such as those
    of a broker that is busy, full or read-only."""
    connection = app.connection_for_write()
    return (KombuError, OSError, *connection.connection_errors, *connection.channel_errors)


def wake(node: Node, run: str, attempt: int) -> bool:
    """Sends the wake-up. Returns False if the broker is unavailable; then the answer to the next report of
    the node brings the work."""
    app = celery.current_app
    try:
        app.send_task(
            TASK,
            kwargs={"run": run, "attempt": attempt},
            queue=queue_of(node),
            ignore_result=True,
            retry=True,
            retry_policy=RETRY,
        )
    except _broker_errors(app) as error:
        log.warning("Node %s could not be woken for run %s, attempt %s: %s", node.name, run, attempt, error)
        return False
    return True
