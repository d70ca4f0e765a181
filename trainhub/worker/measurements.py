"""Measures the tasks of this worker and the messages that wait for one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.signals import task_failure, task_postrun, task_prerun
from django.conf import settings
from django.db import close_old_connections
from kombu.exceptions import ChannelError

from workspaces.hub_metrics.instruments import (
    QUEUED_MESSAGES,
    TASK_FAILURES,
    TASK_SECONDS,
    TASK_WAIT_SECONDS,
)
from workspaces.hub_metrics.publisher import INTERVAL_S, Publisher
from workspaces.task_names import SENT_AT

log = logging.getLogger(__name__)

# When each task of this process began, by its id.
_begins: dict[str, float] = {}


@task_prerun.connect
def _begin(task_id: str, task: Any, **_: object) -> None:
    sent_at = (task.request.headers or {}).get(SENT_AT)
    if isinstance(sent_at, float):
        # The clocks of two servers may differ.
        TASK_WAIT_SECONDS.labels(task.name).observe(max(0.0, time.time() - sent_at))
    _begins[task_id] = time.perf_counter()


@task_postrun.connect
def _end(task_id: str, task: Any, **_: object) -> None:
    if (begin := _begins.pop(task_id, None)) is not None:
        TASK_SECONDS.labels(task.name).observe(time.perf_counter() - begin)


@task_failure.connect
def _failure(sender: Any, **_: object) -> None:
    TASK_FAILURES.labels(sender.name).inc()


class PublishedMeasurements:
    """Stores what this worker measures, in a thread of its own, until the worker ends."""

    def __init__(self, app: Celery) -> None:
        self._publisher = Publisher("worker", settings.TRAINHUB_VERSION)
        self._app = app
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._publish, name="publish-measurements")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _publish(self) -> None:
        while not self._stopped.wait(INTERVAL_S):
            self._try(self._measure_queue)
            self._try(self._publisher.publish)
        self._try(self._publisher.withdraw)

    def _measure_queue(self) -> None:
        """Counts the messages that no worker has taken."""
        queue = settings.CELERY_TASK_DEFAULT_QUEUE
        with self._app.connection_for_read() as connection:
            channel: Any = connection.channel()
            try:
                waiting = channel.queue_declare(queue=queue, passive=True).message_count
            except ChannelError:
                # A broker removes an empty list of messages.
                waiting = 0
        QUEUED_MESSAGES.labels(queue).set(waiting)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            # Whether database or broker do what they should, others log at length.
            log.warning("This worker could not measure or store how it is doing: %s", error)
        finally:
            close_old_connections()
