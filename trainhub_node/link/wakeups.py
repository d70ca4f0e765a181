"""Wake-ups through Celery, which only this module uses. A message names an attempt, and nothing else.

Other content is dropped, because anybody who can write to the queue may have sent it."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import celery
from celery.exceptions import SecurityWarning
from celery.worker import WorkController
from kombu.entity import Exchange, Queue

from trainhub_launch.json_types import JsonObject
from trainhub_node import clock
from trainhub_node.backoff import Backoff
from trainhub_node.broker import broker_link as links
from trainhub_node.broker.broker_link import BrokerLink, InvalidBrokerLink
from trainhub_node.intake.rejections import accepts_key, reject
from trainhub_node.link.hub_client import HubError, TokenRejected

log = logging.getLogger(__name__)
CHECK_INTERVAL_S = 60.0
STOP_TIMEOUT_S = 10.0
BUILT_IN = "celery."
# Celery warns of pickled messages as root; they cannot arrive, because only JSON is accepted.
warnings.filterwarnings("ignore", category=SecurityWarning)


def build_app(link: BrokerLink, wake: Callable[[str, int], None]) -> celery.Celery:
    """Returns an app whose only task calls `wake`."""
    app = celery.Celery("trainhub_node", set_as_current=False)
    name = link.queue
    # The hub declares the queue; this node's user at the broker may only read it.
    queue = Queue(name, Exchange(name), routing_key=name, no_declare=True)
    app.conf.update(
        **link.celery_settings,
        # A queue that does not exist is a channel error, which would end the worker: the hub may declare it
        # later.
        broker_channel_error_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        task_queues=[queue],
        task_default_queue=name,
        accept_content=["json"],
        task_serializer="json",
        result_serializer="json",
        task_ignore_result=True,
        task_create_missing_queues=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_prefetch_multiplier=16,
        # The agent configures its own logging and output, which a Celery worker would otherwise replace.
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
    )

    @app.task(name="node.wake", ignore_result=True, shared=False)
    def woken(run: object = None, attempt: object = None, **_others: object) -> None:
        if accepts_key("a wake-up from the broker", run, attempt):
            wake(run, attempt)  # type: ignore[arg-type]  # checked just now

    app.finalize()
    for task in [task for task in app.tasks if task.startswith(BUILT_IN)]:
        # Celery's built-in tasks call other tasks that a message names.
        app.tasks.unregister(task)
    return app


def connection_error(config: dict[str, object], hub_ca: Path | None = None) -> str:
    """Returns why the broker of `config` does not accept this node, "" if it does."""
    try:
        link = links.from_config(config, hub_ca)
    except InvalidBrokerLink as error:
        return str(error)
    if link is None:
        return ""
    with link.connection() as broker:
        try:
            broker.channel().close()  # type: ignore[attr-defined]  # every transport's channel has it
        except (OSError, *broker.connection_errors, *broker.channel_errors) as error:  # type: ignore[misc]
            return f"{broker.as_uri()}: {error}"
    return ""


class WakeupListener(threading.Thread):
    """Runs a Celery worker, which reconnects to the broker by itself.

    Every minute the listener asks the hub for its configuration: the broker may have changed, this node
    may get none any more, or the hub may have rejected its token."""

    def __init__(
        self,
        config: Callable[[], dict[str, Any]],
        wake: Callable[[str, int], None],
        hub_ca: Path | None = None,
    ) -> None:
        super().__init__(name="listener", daemon=True)
        self._hub_ca = hub_ca
        self._config = config
        self._wake = wake
        self._closing = threading.Event()
        self._ended = threading.Event()
        self._guard = threading.Lock()
        self._worker: CeleryWorker | None = None
        self._link: BrokerLink | None = None
        self._has_config = False
        self._clock_warning = ""

    def run(self) -> None:
        backoff = Backoff(max_s=10.0)
        while not self._closing.is_set():
            try:
                self._apply(self._fetch_config())
                if not self._ended.wait(CHECK_INTERVAL_S):
                    backoff.reset()
                    continue
            except TokenRejected:
                self._replace_worker(None)  # the uplink says why
                self._closing.wait(CHECK_INTERVAL_S)
            except HubError as error:
                log.debug("The hub did not return its broker: %s", error)
            except Exception:
                log.exception("Wake-ups do not arrive; meanwhile the answers to reports bring the work")
            self._ended.clear()
            self._closing.wait(backoff.next_s())

    def stop(self) -> None:
        """Has it ask for no further configuration. Waits for nothing."""
        self._closing.set()
        self._ended.set()

    def close(self) -> None:
        self.stop()
        self._replace_worker(None)

    def _fetch_config(self) -> dict[str, Any]:
        requested_at = time.time()
        config = self._config()
        warning = clock.warning(clock.offset_s(float(config["hub_time"]), requested_at, time.time()))
        if warning and not self._clock_warning:
            log.warning("Times will look wrong: %s", warning)
        if self._clock_warning and not warning:
            log.info("This machine's clock agrees with the hub's again")
        self._clock_warning = warning
        return config

    def _apply(self, config: JsonObject) -> None:
        """Listens as `config` says, unless the worker does so already."""
        try:
            link = links.from_config(config, self._hub_ca)
        except InvalidBrokerLink as error:
            reject("the hub's answer about the broker", str(error))
            link = None
        if link is not None:
            if self._worker is None or not self._worker.is_alive() or self._worker.link != link:
                self._replace_worker(CeleryWorker(link, self._wake, self._ended.set))
        elif self._link is not None or not self._has_config:
            self._replace_worker(None)
            log.info("The hub has no broker for this node: its answers to reports bring the work")
        self._link, self._has_config = link, True

    def _replace_worker(self, worker: CeleryWorker | None) -> None:
        with self._guard:
            previous, self._worker = self._worker, worker
            if previous is not None:
                previous.stop()
                previous.join(STOP_TIMEOUT_S)
            if worker is not None and not self._closing.is_set():
                self._ended.clear()
                worker.start()


class CeleryWorker(threading.Thread):
    """A Celery worker in a thread of this process. `on_end` is called when it has ended."""

    def __init__(
        self, link: BrokerLink, wake: Callable[[str, int], None], on_end: Callable[[], None]
    ) -> None:
        super().__init__(name="celery", daemon=True)
        self.link = link
        self._on_end = on_end
        self._app = build_app(link, wake)
        self._controller = WorkController(
            app=self._app,
            pool="solo",
            # Each of these three would publish or declare something, which the node's broker user may not do.
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            quiet=True,
        )

    def run(self) -> None:
        encryption = "" if links.is_encrypted(self.link) else ", over a connection that is not encrypted"
        log.info("Listening on queue %s%s", self.link.queue, encryption)
        # Celery looks tasks up in the current app. They are quick, and run in this thread.
        self._app.set_current()
        try:
            self._controller.start()
        finally:
            self._app.close()
            self._on_end()

    def stop(self) -> None:
        self._controller.stop()
