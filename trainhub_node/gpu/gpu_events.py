"""GPU events (XID, ECC), stored until the hub has them, and the thread that waits for them."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from trainhub_launch.telemetry import GpuEvent
from trainhub_node.gpu.nvml_errors import TIMEOUT, QueryFailed

log = logging.getLogger(__name__)
MAX_EVENTS = 1000
RETRY_S = 1.0
JOIN_TIMEOUT_S = 5.0
# NVML's `gpuInstanceId` of an event that concerns no MIG instance.
NO_INSTANCE = 0xFFFFFFFF


@dataclass(frozen=True)
class LibraryEvent:
    """An event as the library reports it. `gpu`: UUID, "" if unknown. `kind`: xid or ecc."""

    kind: str
    gpu: str
    code: int
    instance: int = NO_INSTANCE


class GpuEventLog:
    """A thread-safe queue of events in order of arrival. Each stays until the hub has confirmed it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._events: deque[GpuEvent] = deque()
        self._serial = 0
        self._last_xid: dict[str, int] = {}
        self._xids: Counter[str] = Counter()

    def add(self, kind: str, gpu: str, *, code: int = 0, detail: str = "") -> None:
        with self._lock:
            self._serial += 1
            if len(self._events) >= MAX_EVENTS:
                dropped = self._events.popleft()
                log.warning(
                    "More than %d GPU events wait for the hub; the oldest is dropped: %s", MAX_EVENTS, dropped
                )
            self._events.append(GpuEvent(self._serial, self._clock(), kind, gpu, code, detail))
            # Counted apart from the queue, which loses its events as soon as the hub has confirmed them.
            if kind == "xid":
                self._last_xid[gpu] = code
                self._xids[gpu] += 1

    def record_event(self, event: LibraryEvent) -> None:
        if event.kind == "xid":
            # The hub explains the code; for readers of this log: docs.nvidia.com/deploy/xid-errors.
            log.warning("GPU %s: XID error %d", event.gpu or "(unknown)", event.code)
            self.add("xid", event.gpu, code=event.code, detail=_detail(event))
        else:
            log.warning("GPU %s: a memory error that ECC could not correct", event.gpu or "(unknown)")
            self.add(event.kind, event.gpu, detail="A memory error that ECC could not correct.")

    def all(self) -> tuple[GpuEvent, ...]:
        with self._lock:
            return tuple(self._events)

    def confirm(self, serial: int) -> None:
        with self._lock:
            while self._events and self._events[0].serial <= serial:
                self._events.popleft()

    def counters(self, gpu: str) -> dict[str, int]:
        """Returns the last XID code of the GPU and the number of its XID errors since the agent started;
        empty before the first one."""
        with self._lock:
            return (
                {"xid_last": self._last_xid[gpu], "xid_count": self._xids[gpu]}
                if gpu in self._last_xid
                else {}
            )


def _detail(event: LibraryEvent) -> str:
    return "" if event.instance == NO_INSTANCE else f"MIG GPU instance {event.instance}"


class GpuEventListener(threading.Thread):
    """A thread that waits for events of one session of the library.

    `wait` blocks for about a second and raises QueryFailed with TIMEOUT without an event. After any other
    error the thread pauses before it waits again."""

    def __init__(self, wait: Callable[[], LibraryEvent], events: GpuEventLog) -> None:
        super().__init__(name="gpu-events", daemon=True)
        self._wait = wait
        self._events = events
        self._closing = threading.Event()
        self._logged: set[str] = set()

    def run(self) -> None:
        while not self._closing.is_set():
            try:
                self._events.record_event(self._wait())
            except Exception as error:
                self._pause_after(error)

    def close(self) -> bool:
        """Returns whether the thread has ended: the library may only be closed when no call is in it."""
        self._closing.set()
        if self.ident is not None:
            self.join(JOIN_TIMEOUT_S)
        return not self.is_alive()

    def _pause_after(self, error: Exception) -> None:
        # No event within a second is the normal case, and no reason to pause.
        if isinstance(error, QueryFailed) and error.code == TIMEOUT:
            return
        if repr(error) not in self._logged:
            self._logged.add(repr(error))
            log.warning("Waiting for GPU events failed; it is retried: %r (logged once)", error)
        self._closing.wait(RETRY_S)
