"""Telling a node that something waits for it there. A lost wake-up costs seconds, never the run."""

from __future__ import annotations

import logging
from typing import Any

import celery
from kombu.exceptions import KombuError

from clusters.models import Node

log = logging.getLogger(__name__)
TASK = "node.wake"
RETRY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}


def queue_of(node: Node) -> str:
    """Of the name that its user at the broker may read (clusters.brokers)."""
    return f"node.{node.name}.wake"


def _errors_of(app: Any) -> tuple[type[BaseException], ...]:
    """What the broker's client raises: for a connection that is lost, and for an answer that is an error (a
    broker that is busy, full or read-only)."""
    connection = app.connection_for_write()
    return (KombuError, OSError, *connection.connection_errors, *connection.channel_errors)


def wake(node: Node, run: str, attempt: int) -> bool:
    """Send the wake-up; False when the broker is away. Then the answer to the node's next report says the
    same."""
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
    except _errors_of(app) as error:
        log.warning("Node %s could not be woken for run %s, attempt %s: %s", node.name, run, attempt, error)
        return False
    return True
