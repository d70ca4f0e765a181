"""Periodic tasks that the worker runs itself, without messages through the broker."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from celery import Celery
from django.db import close_old_connections

from trainhub.worker.periodic_tasks import local_tasks
from workspaces.hub_metrics.instruments import ROUND_LATE_SECONDS
from workspaces.hub_metrics.rounds import measured_round

log = logging.getLogger(__name__)


class LocalTasks:
    """Runs each task in a thread of its own: a slow task delays no other, and none runs twice at the same
    time."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._stopped = threading.Event()

    def start(self) -> None:
        for name, interval_s in local_tasks().items():
            arguments = (name, self._app.tasks[name].run, interval_s)
            threading.Thread(target=self._repeat, args=arguments, name=name).start()

    def stop(self) -> None:
        """Starts no further runs. The interpreter waits for those in progress before it exits."""
        self._stopped.set()

    def _repeat(self, name: str, task: Callable[[], None], interval_s: float) -> None:
        due = time.monotonic()
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            ROUND_LATE_SECONDS.labels(name).set(max(0.0, time.monotonic() - due))
            _run(name, task)
            # Runs that were due while the task was running are left out.
            due = max(due + interval_s, time.monotonic())


def _run(name: str, task: Callable[[], None]) -> None:
    try:
        with measured_round(name):
            task()
    except Exception:
        log.exception("The periodic task %s failed; it is tried again when it is due", name)
    finally:
        close_old_connections()
