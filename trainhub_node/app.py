"""Wake-ups: the only module that knows Celery. A message says which attempt, and nothing else."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable
from typing import Any

import celery
from celery.platforms import SecurityWarning
from celery.worker import WorkController
from kombu.entity import Exchange, Queue

from trainhub_node.backoff import Backoff
from trainhub_node.hub import HubError

log = logging.getLogger(__name__)
# What it warns of, pickled messages as root, cannot happen: only JSON is accepted.
warnings.filterwarnings("ignore", category=SecurityWarning)


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
    """Keeps a Celery worker, in threads of this process. The broker's absence is Celery's own to mend; should the
    worker end nevertheless, the hub is asked anew how to listen."""

    def __init__(self, config: Callable[[], dict[str, Any]], wake: Callable[[str, int], None]) -> None:
        super().__init__(name="listener", daemon=True)
        self._config = config
        self._wake = wake
        self._closing = threading.Event()
        self._worker: WorkController | None = None

    def run(self) -> None:
        backoff = Backoff(most_s=10.0)
        while not self._closing.is_set():
            try:
                self._listen(self._config())
            except HubError as error:
                log.debug("The hub does not say where its broker is: %s", error)
            except Exception:
                log.exception("Wake-ups do not arrive; reports bring the work meanwhile")
            self._closing.wait(backoff.next_s())

    def close(self) -> None:
        self._closing.set()
        if self._worker is not None:
            self._worker.stop()

    def _listen(self, config: dict[str, Any]) -> None:
        self._worker = WorkController(
            app=make(config, self._wake), pool="threads", concurrency=2, without_gossip=True, without_mingle=True,
            without_heartbeat=True, quiet=True,
        )
        log.info("Listening on queue %s", config["queue"])
        self._worker.start()
