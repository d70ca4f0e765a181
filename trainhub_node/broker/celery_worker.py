"""The Celery worker that receives wake-ups, and all other use of Celery. A message names an attempt, and
nothing else.

Other content is dropped, because anybody who can write to the queue may have sent it."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import celery
from celery.exceptions import SecurityWarning
from celery.worker import WorkController
from kombu.entity import Exchange, Queue

from trainhub_node.broker import broker_link as links
from trainhub_node.broker.broker_address import InvalidBrokerLink
from trainhub_node.broker.broker_link import BrokerLink
from trainhub_node.intake.rejections import accepts_key

log = logging.getLogger(__name__)
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


def check_connection(config: dict[str, object], hub_ca: Path | None = None) -> str:
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
