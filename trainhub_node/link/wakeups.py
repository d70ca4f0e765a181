"""Listens for wake-ups: messages through a broker that name an attempt of which this node has a part."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainhub_launch.json_types import JsonObject
from trainhub_node import clock
from trainhub_node.backoff import Backoff
from trainhub_node.broker.broker_address import InvalidBrokerLink
from trainhub_node.intake.rejections import reject
from trainhub_node.link.hub_client import HubError, TokenRejected

if TYPE_CHECKING:
    from trainhub_node.broker.broker_link import BrokerLink
    from trainhub_node.broker.celery_worker import CeleryWorker

log = logging.getLogger(__name__)
CHECK_INTERVAL_S = 60.0
STOP_TIMEOUT_S = 10.0


def _load() -> Any:
    """Returns the module that uses Celery. To load it takes almost as long as all the rest of the program,
    and a node's first report need not wait for it."""
    return import_module("trainhub_node.broker.celery_worker")


def connection_error(config: dict[str, object], hub_ca: Path | None = None) -> str:
    """Returns why the broker of `config` does not accept this node, "" if it does."""
    return str(_load().check_connection(config, hub_ca))


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
        celery_worker = _load()
        try:
            link = celery_worker.links.from_config(config, self._hub_ca)
        except InvalidBrokerLink as error:
            reject("the hub's answer about the broker", str(error))
            link = None
        if link is not None:
            if self._worker is None or not self._worker.is_alive() or self._worker.link != link:
                self._replace_worker(celery_worker.CeleryWorker(link, self._wake, self._ended.set))
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
