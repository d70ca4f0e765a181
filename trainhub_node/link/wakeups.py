"""Wake-ups: the only module that knows Celery. A message says which attempt, and nothing else.

Whatever else it says is dropped here: a message may have been sent by anybody who can write to the queue.
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import celery
from celery.platforms import SecurityWarning
from celery.worker import WorkController
from kombu.entity import Exchange, Queue

from trainhub_node import clock
from trainhub_node.backoff import Backoff
from trainhub_node.broker import broker_link as links
from trainhub_node.broker.broker_link import BadLink, Link
from trainhub_node.intake.rejections import accepts_key, reject
from trainhub_node.link.hub_client import HubError, Unwelcome

log = logging.getLogger(__name__)
ASK_AGAIN_S = 60.0
STOPS_S = 10.0
BUILT_IN = "celery."
# What it warns of, pickled messages as root, cannot happen: only JSON is accepted.
warnings.filterwarnings("ignore", category=SecurityWarning)


def make(link: Link, wake: Callable[[str, int], None]) -> celery.Celery:
    """An app whose one task calls `wake`."""
    app = celery.Celery("trainhub_node", set_as_current=False)
    name = link.queue
    # The hub declares the queue; this node's user at the broker may only read it.
    queue = Queue(name, Exchange(name), routing_key=name, no_declare=True)  # type: ignore[no-untyped-call]
    app.conf.update(
        **link.celery_settings,
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
        # Those that come with Celery call other tasks, as the message says.
        app.tasks.unregister(task)
    return app


def unreachable(config: dict[str, Any], hub_ca: Path | None = None) -> str:
    """Why the broker of `config` does not take this node; nothing where it does."""
    try:
        link = links.from_config(config, hub_ca)
    except BadLink as error:
        return str(error)
    if link is None:
        return ""
    with link.connection() as broker:
        try:
            broker.channel().close()
        except (OSError, *broker.connection_errors, *broker.channel_errors) as error:
            return f"{broker.as_uri()}: {error}"
    return ""


class Listener(threading.Thread):
    """Keeps a Celery worker. The broker's absence is Celery's own to mend. The hub is asked every minute how
    to listen: it may have another broker by now, or none for this node, or not want this node any more."""

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
        self._worker: Worker | None = None
        self._link: Link | None = None
        self._has_asked = False
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
        try:
            link = links.from_config(config, self._hub_ca)
        except BadLink as error:
            reject("the hub's answer about the broker", str(error))
            link = None
        if link is not None:
            if self._worker is None or not self._worker.is_alive() or self._worker.link != link:
                self._replace(Worker(link, self._wake, self._ended.set))
        elif self._link is not None or not self._has_asked:
            self._replace(None)
            log.info("The hub has no broker for this node: its answers to reports bring the work")
        self._link, self._has_asked = link, True

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

    def __init__(self, link: Link, wake: Callable[[str, int], None], ended: Callable[[], None]) -> None:
        super().__init__(name="celery", daemon=True)
        self.link = link
        self._ended = ended
        self._app = make(link, wake)
        self._controller = WorkController(
            app=self._app,
            pool="solo",
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            quiet=True,
        )

    def run(self) -> None:
        unsafe = "" if links.is_encrypted(self.link) else ", over a connection that is not encrypted"
        log.info("Listening on queue %s%s", self.link.queue, unsafe)
        # Where tasks are looked up: they are quick, and run in this thread.
        self._app.set_current()
        try:
            self._controller.start()
        finally:
            self._app.close()
            self._ended()

    def stop(self) -> None:
        self._controller.stop()
