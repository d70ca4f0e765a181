"""Repeats slow GPU queries in a thread of their own, so that the one-second loop never waits for them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from trainhub_node.gpu.nvml_errors import QueryFailed, QueryUnsupported

log = logging.getLogger(__name__)
GRACE_S = 2.5
JOIN_TIMEOUT_S = 5.0


class BackgroundReader(threading.Thread):
    """Repeats each of its calls every `every_s` seconds and keeps the last result."""

    def __init__(self, every_s: float) -> None:
        super().__init__(name="gpu-slow", daemon=True)
        self._every_s = every_s
        self._lock = threading.Lock()
        self._calls: dict[str, Callable[[], Mapping[str, float]]] = {}
        self._results: dict[str, tuple[float, Mapping[str, float] | QueryFailed]] = {}
        self._closing = threading.Event()

    def latest(self, name: str, call: Callable[[], Mapping[str, float]]) -> Mapping[str, float]:
        """Returns the last result of the call, empty before the first and after it has expired.

        The first use schedules the call. Raises QueryFailed if the call did."""
        with self._lock:
            self._calls[name] = call
            read_at, result = self._results.get(name, (float("-inf"), {}))
            if isinstance(result, QueryFailed):
                # Raised once only: a failure that stayed here would count again in each one-second round.
                del self._results[name]
        # Started at the first use, because a GPU with GPM or 64-bit counters never needs the slow call.
        if self.ident is None:
            self.start()
        if isinstance(result, QueryFailed):
            raise result
        return result if time.monotonic() - read_at <= self._every_s + GRACE_S else {}

    def run(self) -> None:
        while not self._closing.is_set():
            started = time.monotonic()
            for name, call in self._calls_snapshot():
                if self._closing.is_set():
                    return
                self._call(name, call)
            self._closing.wait(max(0.1, self._every_s - (time.monotonic() - started)))

    def close(self) -> bool:
        """Returns whether the thread has ended: the library may only be closed when no call is in it."""
        self._closing.set()
        if self.ident is not None:
            self.join(JOIN_TIMEOUT_S)
        return not self.is_alive()

    def _calls_snapshot(self) -> list[tuple[str, Callable[[], Mapping[str, float]]]]:
        with self._lock:
            return list(self._calls.items())

    def _call(self, name: str, call: Callable[[], Mapping[str, float]]) -> None:
        try:
            result: Mapping[str, float] | QueryFailed = call()
        except QueryFailed as error:
            result = error
        except Exception:
            log.exception("A background reading of GPU %s failed", name)
            result = {}
        with self._lock:
            self._results[name] = (time.monotonic(), result)
            if isinstance(result, QueryUnsupported):
                self._calls.pop(name, None)
