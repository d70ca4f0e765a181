"""The worker's connection to the broker, which is renewed after failures."""

from __future__ import annotations

import logging
import time
from typing import Any

from celery.worker import state
from celery.worker.consumer import Consumer

from trainhub.worker.pause import Pause

log = logging.getLogger(__name__)
LOOK_S = 0.2


class PatientConsumer(Consumer):
    """A consumer that waits before it connects again after a connection has failed, longer each time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._pause = Pause()
        super().__init__(*args, **kwargs)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        super().on_connection_error_after_connected(exc)
        seconds = self._pause.after_failure()
        log.warning(
            "The broker failed (%s: %s); the worker connects again in %.1f s",
            type(exc).__name__,
            exc,
            seconds,
        )
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            # Raises where the worker has been told to end.
            state.maybe_shutdown()
            time.sleep(LOOK_S)
