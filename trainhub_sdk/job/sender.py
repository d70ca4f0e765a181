"""Sends what a process logs to the hub, in batches by one thread in the background.

A hub that is away delays the sending. What finally cannot be sent is dropped, and one line on stderr says
so: logging never ends a training."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Union

if TYPE_CHECKING:
    from trainhub_sdk.job.hub_calls import HubCalls

PERIOD_S = 1.0
LONGEST_PAUSE_S = 30.0
MAX_METRICS, MAX_TAGS = 1000, 100
# The hub takes 1 MiB.
MAX_BATCH_CHARACTERS = 700_000
# About 50 MB; who logs more while the hub is away loses the oldest.
MAX_WAITING = 200_000
EXIT_S = 20.0
# A job has 10 s between SIGTERM and its end, and its own handlers need some of it.
STOP_S = 4.0


class Metric(NamedTuple):
    key: str
    value: float
    step: int
    timestamp: int


class Tag(NamedTuple):
    key: str
    value: str


Item = Union[Metric, Tag]


class Sender:
    """Sends to one run. `connect` makes the connection, when something is sent first."""

    def __init__(self, connect: Callable[[], HubCalls], run_id: str) -> None:
        self._connect = connect
        self._run_id = run_id
        self._calls: HubCalls | None = None
        # Appending to it needs no lock, so `add` may be called in a signal handler.
        self._waiting: deque[Item] = deque()
        self._sending = threading.RLock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._dropped = 0
        self._reason = ""
        # Whether the hub has refused who sends, which one line says.
        self._is_refused = False
        atexit.register(self._finish, EXIT_S)
        _SENDERS.append(self)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def add(self, item: Item) -> None:
        self._waiting.append(item)
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popleft()
            self._dropped += 1
        if self._thread is None:
            self._start()
        elif len(self._waiting) >= MAX_METRICS:
            self._wake.set()

    def flush(self, timeout_s: float = EXIT_S) -> bool:
        """Returns whether everything is sent, after `timeout_s` at the latest."""
        end, pause = time.monotonic() + timeout_s, 0.2
        while self._waiting or self._is_busy():
            if self._send_batch(end):
                continue
            if time.monotonic() + pause > end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 2.0)
        return True

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="trainhub-log", daemon=True)
        _handle_stop()
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None  # Python ends: what waits is sent at exit

    def _work(self) -> None:
        pause = PERIOD_S
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            is_sent = True
            while self._waiting and is_sent:
                is_sent = self._send_batch()
            pause = PERIOD_S if is_sent else min(2 * pause, LONGEST_PAUSE_S)

    def _is_busy(self) -> bool:
        """Returns whether the thread has a batch in its hands."""
        if not self._sending.acquire(blocking=False):
            return True
        self._sending.release()
        return False

    def _send_batch(self, end: float = 0.0) -> bool:
        """Sends what fits into one request. Returns whether the hub could be reached."""
        timeout_s = max(0.5, min(10.0, end - time.monotonic())) if end else 10.0
        if not self._sending.acquire(timeout=timeout_s):
            return False
        try:
            batch = self._take()
            return not batch or self._send(batch, timeout_s)
        finally:
            self._sending.release()

    def _take(self) -> list[Item]:
        batch: list[Item] = []
        tags = characters = 0
        while self._waiting and len(batch) < MAX_METRICS:
            item = self._waiting[0]
            tags += isinstance(item, Tag)
            characters += len(item.key) + (len(item.value) if isinstance(item, Tag) else 60)
            if batch and (tags > MAX_TAGS or characters > MAX_BATCH_CHARACTERS):
                break
            batch.append(self._waiting.popleft())
        return batch

    def _send(self, batch: list[Item], timeout_s: float) -> bool:
        # Imported when something is sent: it takes longer than the rest of the package.
        from trainhub_sdk.job.hub_calls import Refused, Unreachable

        try:
            if self._calls is None:
                self._calls = self._connect()
            self._calls.log_batch(self._run_id, batch, timeout_s)
        except Unreachable as error:
            self._reason = str(error)
            self._waiting.extendleft(reversed(batch))
            return False
        except Refused as error:
            self._part(batch, error.is_about_content, str(error), timeout_s)
        return True

    def _part(self, batch: list[Item], is_about_content: bool, reason: str, timeout_s: float) -> None:
        """Halves a batch that the hub has refused, until only what is wrong in it is lost."""
        if is_about_content and len(batch) > 1:
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                if not self._send(half, timeout_s):
                    return
            return
        if is_about_content or not self._is_refused:
            what = f"{batch[0].key!r} is not logged" if len(batch) == 1 else f"{len(batch)} values are lost"
            print(f"TrainHub: {what}: {reason}", file=sys.stderr, flush=True)
        self._is_refused = self._is_refused or not is_about_content
        self._reason = reason

    def _finish(self, timeout_s: float) -> None:
        if not self._waiting and self._thread is None:
            return
        if self.flush(timeout_s) and not self._dropped:
            return
        lost = len(self._waiting) + self._dropped
        reason = self._reason or "there were too many at once"
        print(
            f"TrainHub: {lost:,} logged values did not reach the hub: {reason}", file=sys.stderr, flush=True
        )
        self._waiting.clear()
        self._dropped = 0

    def _forget(self) -> None:
        """In a child process, which has no thread, and whose parent sends what waits."""
        self._waiting.clear()
        self._sending = threading.RLock()
        self._wake = threading.Event()
        self._thread = self._calls = None


_SENDERS: list[Sender] = []


def _handle_stop() -> None:
    """Sends what waits before SIGTERM ends the process, unless the script handles SIGTERM itself."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _stop)


def _stop(number: int, _frame: object) -> None:
    end = time.monotonic() + STOP_S
    for sender in _SENDERS:
        sender._finish(max(0.1, end - time.monotonic()))
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
