"""Wake-ups: the only module that knows Celery. A message says which attempt, and nothing else."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import celery
from celery.apps.worker import Worker
from kombu.entity import Exchange, Queue

log = logging.getLogger(__name__)


def make(config: dict[str, Any], wake: Callable[[str, int], None]) -> celery.Celery:
    """An app whose one task calls `wake`. `config`: the hub's answer about how to listen."""
    app = celery.Celery("trainhub_node", set_as_current=False)
    name = config["queue"]
    queue = Queue(name, Exchange(name), routing_key=name)  # type: ignore[no-untyped-call]
    app.conf.update(
        broker_url=config["broker_url"],
        broker_transport_options={"global_keyprefix": config["key_prefix"]} if config["key_prefix"] else {},
        broker_connection_retry_on_startup=True, broker_connection_max_retries=None,
        task_queues=[queue], task_default_queue=name,
        accept_content=["json"], task_serializer="json", result_serializer="json", task_ignore_result=True,
        task_create_missing_queues=False, worker_enable_remote_control=False, worker_send_task_events=False,
        worker_prefetch_multiplier=16, worker_hijack_root_logger=False, worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
    )

    @app.task(name="node.wake", ignore_result=True)
    def woken(run: str, attempt: int) -> None:
        wake(run, attempt)

    return app


class Listener(threading.Thread):
    """The Celery worker, in threads of this process. Losing the broker is its own to mend."""

    def __init__(self, app: celery.Celery) -> None:
        super().__init__(name="listener", daemon=True)
        self._worker = Worker(
            app=app, pool="threads", concurrency=2, without_gossip=True, without_mingle=True, without_heartbeat=True,
            quiet=True, loglevel="WARNING",
        )

    def run(self) -> None:
        self._worker.start()

    def close(self) -> None:
        self._worker.stop()
