"""Wake-ups: the only module that knows Celery. A message says which attempt, and nothing else."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import celery
from celery.platforms import SecurityWarning
from celery.worker import WorkController
from kombu.connection import Connection
from kombu.entity import Exchange, Queue

from trainhub_node import clock
from trainhub_node.backoff import Backoff
from trainhub_node.hub import HubError, Unwelcome

log = logging.getLogger(__name__)
ASK_AGAIN_S = 60.0
STOPS_S = 10.0
REACHED_S = 5.0
ROAD = ("broker_url", "queue", "transport_options")
# What it warns of, pickled messages as root, cannot happen: only JSON is accepted.
warnings.filterwarnings("ignore", category=SecurityWarning)


def make(config: dict[str, Any], wake: Callable[[str, int], None]) -> celery.Celery:
    """An app whose one task calls `wake`. `config`: the hub's answer about how to listen."""
    app = celery.Celery("trainhub_node", set_as_current=False)
    name = config["queue"]
    queue = Queue(name, Exchange(name), routing_key=name)  # type: ignore[no-untyped-call]
    app.conf.update(
        broker_url=config["broker_url"],
        broker_transport_options=config["transport_options"],
        broker_connection_retry_on_startup=True, broker_connection_max_retries=None,
        task_queues=[queue], task_default_queue=name,
        accept_content=["json"], task_serializer="json", result_serializer="json", task_ignore_result=True,
        task_create_missing_queues=False, worker_enable_remote_control=False, worker_send_task_events=False,
        worker_prefetch_multiplier=16, worker_hijack_root_logger=False, worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
    )

    @app.task(name="node.wake", ignore_result=True, shared=False)
    def woken(run: str, attempt: int) -> None:
        wake(run, attempt)

    return app


def unreachable(config: dict[str, Any]) -> str:
    """Why the broker of `config` does not take this node; nothing where it does."""
    options = config["transport_options"]
    broker = Connection(config["broker_url"], connect_timeout=REACHED_S, transport_options=options)  # type: ignore[no-untyped-call]
    with broker:
        try:
            broker.channel().close()  # type: ignore[no-untyped-call]
        except (OSError, *broker.connection_errors, *broker.channel_errors) as error:
            return f"{broker.as_uri()}: {error}"
    return ""


class Listener(threading.Thread):
    """Keeps a Celery worker. The broker's absence is Celery's own to mend. The hub is asked every minute how to listen:
    it may have another broker by now, or none for this node, or not want this node any more."""

    def __init__(self, config: Callable[[], dict[str, Any]], wake: Callable[[str, int], None]) -> None:
        super().__init__(name="listener", daemon=True)
        self._config = config
        self._wake = wake
        self._closing = threading.Event()
        self._ended = threading.Event()
        self._guard = threading.Lock()
        self._worker: Worker | None = None
        self._road: dict[str, Any] = {}
        self._doubt = ""

    def run(self) -> None:
        backoff = Backoff(most_s=10.0)
        while not self._closing.is_set():
            try:
                self._follow(self._ask())
                if not self._ended.wait(ASK_AGAIN_S):
                    backoff.reset()
                    continue
            except Unwelcome:
                self._replace(None)  # the uplink says why
                self._closing.wait(ASK_AGAIN_S)
            except HubError as error:
                log.debug("The hub does not say where its broker is: %s", error)
            except Exception:
                log.exception("Wake-ups do not arrive; reports bring the work meanwhile")
            self._ended.clear()
            self._closing.wait(backoff.next_s())

    def close(self) -> None:
        self._closing.set()
        self._ended.set()
        self._replace(None)

    def _ask(self) -> dict[str, Any]:
        asked_at = time.time()
        config = self._config()
        doubt = clock.doubt(clock.offset_s(float(config["hub_time"]), asked_at, time.time()))
        if doubt and not self._doubt:
            log.warning("Times will look wrong: %s", doubt)
        if self._doubt and not doubt:
            log.info("This machine's clock agrees with the hub's again")
        self._doubt = doubt
        return config

    def _follow(self, config: dict[str, Any]) -> None:
        """Listen as `config` says, unless that is done already."""
        road = {name: config[name] for name in ROAD}
        if road["broker_url"]:
            if self._worker is None or not self._worker.is_alive() or self._worker.road != road:
                self._replace(Worker(road, self._wake, self._ended.set))
        elif self._road != road:
            self._replace(None)
            log.info("The hub has no broker for this node: its answers to reports bring the work")
        self._road = road

    def _replace(self, worker: Worker | None) -> None:
        with self._guard:
            before, self._worker = self._worker, worker
            if before is not None:
                before.stop()
                before.join(STOPS_S)
            if worker is not None and not self._closing.is_set():
                self._ended.clear()
                worker.start()


class Worker(threading.Thread):
    """A Celery worker in a thread of this process; `ended` is called when it is no more."""

    def __init__(self, road: dict[str, Any], wake: Callable[[str, int], None], ended: Callable[[], None]) -> None:
        super().__init__(name="celery", daemon=True)
        self.road = road
        self._ended = ended
        self._app = make(road, wake)
        self._controller = WorkController(
            app=self._app, pool="solo", without_gossip=True, without_mingle=True, without_heartbeat=True, quiet=True,
        )

    def run(self) -> None:
        log.info("Listening on queue %s", self.road["queue"])
        # Where tasks are looked up: they are quick, and run in this thread.
        self._app.set_current()
        try:
            self._controller.start()
        finally:
            self._app.close()
            self._ended()

    def stop(self) -> None:
        self._controller.stop()
