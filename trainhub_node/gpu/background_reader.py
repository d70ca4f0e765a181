"""Questions that a device takes long to answer, in a thread of their own, so that nothing once a second waits
for them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from trainhub_node.gpu.nvml_errors import Unanswered, Unsupported

log = logging.getLogger(__name__)
LATE_S = 2.5
LONGEST_CALL_S = 5.0


class SlowReader(threading.Thread):
    """Asks each of its questions every `every_s` seconds and keeps the last answer."""

    def __init__(self, every_s: float) -> None:
        super().__init__(name="gpu-slow", daemon=True)
        self._every_s = every_s
        self._lock = threading.Lock()
        self._questions: dict[str, Callable[[], Mapping[str, float]]] = {}
        self._answers: dict[str, tuple[float, Mapping[str, float] | Unanswered]] = {}
        self._closing = threading.Event()

    def latest(self, name: str, question: Callable[[], Mapping[str, float]]) -> Mapping[str, float]:
        """What it answered last, empty before that and when that is too long ago. The first call has it asked
        from now on."""
        with self._lock:
            self._questions[name] = question
            at, told = self._answers.get(name, (float("-inf"), {}))
            if isinstance(told, Unanswered):
                del self._answers[name]
        if self.ident is None:
            self.start()
        if isinstance(told, Unanswered):
            raise told
        return told if time.monotonic() - at <= self._every_s + LATE_S else {}

    def run(self) -> None:
        while not self._closing.is_set():
            began = time.monotonic()
            for name, question in self._all():
                if self._closing.is_set():
                    return
                self._ask(name, question)
            self._closing.wait(max(0.1, self._every_s - (time.monotonic() - began)))

    def close(self) -> bool:
        """Whether it has ended: the library may only be closed when nobody is inside."""
        self._closing.set()
        if self.ident is not None:
            self.join(LONGEST_CALL_S)
        return not self.is_alive()

    def _all(self) -> list[tuple[str, Callable[[], Mapping[str, float]]]]:
        with self._lock:
            return list(self._questions.items())

    def _ask(self, name: str, question: Callable[[], Mapping[str, float]]) -> None:
        try:
            told: Mapping[str, float] | Unanswered = question()
        except Unanswered as error:
            told = error
        except Exception:
            log.exception("A slow reading of GPU %s failed", name)
            told = {}
        with self._lock:
            self._answers[name] = (time.monotonic(), told)
            if isinstance(told, Unsupported):
                self._questions.pop(name, None)
