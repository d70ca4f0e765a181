"""Tracks the GPUs of this machine, which may be lost and come back, and the library that reads them, which
may fail and recover."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from trainhub_launch.machine import GpuFact
from trainhub_launch.metrics import MEDIUM_S, SLOW_S
from trainhub_launch.telemetry import GpuEvent
from trainhub_node.backoff import Backoff
from trainhub_node.gpu import nvml_errors
from trainhub_node.gpu.background_reader import BackgroundReader
from trainhub_node.gpu.device import LOST, MIN_FAILURES, OK, UNKNOWN, GpuMonitor
from trainhub_node.gpu.gpu_events import GpuEventListener, GpuEventLog
from trainhub_node.gpu.gpu_processes import ProcessInfo, ProcessOwner
from trainhub_node.gpu.library import GpuLibrary, ListedGpu
from trainhub_node.gpu.nvml_errors import LIBRARY_NOT_FOUND, DeviceLost, LibraryLost, QueryFailed
from trainhub_node.gpu.readings import JITTER_S

log = logging.getLogger(__name__)
MAX_RETRY_S = 60.0
CLOSE_TIMEOUT_S = 10.0
MISSING_DEVICE = (
    "It is no longer among the devices of this machine: check dmesg; a reboot usually brings it back."
)


class GpuInventory:
    """All GPUs and MIG devices of this machine. `read` belongs to one thread; every other method may be
    called from any thread.

    `now`: seconds of a steady clock. The lock protects a reading against `close`, which the agent calls from
    another thread."""

    def __init__(self, library: GpuLibrary, find_owner: Callable[[int], ProcessOwner | None]) -> None:
        self.driver = self.cuda = self.trouble = ""
        self._library = library
        self._processes = ProcessInfo(find_owner)
        self._event_log = GpuEventLog()
        self._devices: dict[str, GpuMonitor] = {}
        self._logged: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._backoff = Backoff(MAX_RETRY_S)
        self._listener: GpuEventListener | None = None
        self._background = BackgroundReader(MEDIUM_S)
        self._event_handles: set[int] = set()
        self._is_open = self._is_closed = False
        self._has_worked = self._is_loss_recorded = False
        self._next_open_at = self._checked_at = self._listed_at = float("-inf")
        self._gpu_count = 0

    def read(self, now: float) -> tuple[GpuFact, ...]:
        """Takes the readings that are due. Returns every device that was ever listed, including lost ones."""
        with self._lock:
            try:
                if not self._is_closed:
                    self._refresh(now)
            except LibraryLost as error:
                self._mark_library_lost(error, now)
            return tuple(
                device.fact(now, self._event_log.counters(uuid)) for uuid, device in self._devices.items()
            )

    def events(self) -> tuple[GpuEvent, ...]:
        """Returns all unconfirmed events, oldest first."""
        return self._event_log.all()

    def confirm(self, serial: int) -> None:
        """Drops events up to this serial, which the hub has stored."""
        self._event_log.confirm(serial)

    def close(self) -> None:
        """Closes the library after a running read, for which it waits at most CLOSE_TIMEOUT_S: a driver may
        hang."""
        if not self._lock.acquire(timeout=CLOSE_TIMEOUT_S):
            log.warning("The GPU driver does not answer; it is left as it is")
            return
        try:
            self._is_closed = True
            self._close_library()
        finally:
            self._lock.release()

    def _refresh(self, now: float) -> None:
        if now >= self._next_open_at and (not self._is_open or self._is_every_device_lost):
            # Also when all devices are lost: a device that comes back may be visible only to a library
            # that is initialised afterwards.
            self._close_library()
            self._next_open_at = now + self._backoff.next_s()
            self._open()
        if not self._is_open:
            return
        # Only every MEDIUM_S seconds are devices counted and lost ones tried again; other rounds only read.
        is_fresh = not self._checked_at <= now < self._checked_at + MEDIUM_S - JITTER_S
        if is_fresh:
            self._checked_at = now
            if self._is_list_due(now):
                self._list_devices(now)
        self._refresh_devices(now, is_fresh=is_fresh)

    @property
    def _is_every_device_lost(self) -> bool:
        return bool(self._devices) and all(device.state == LOST for device in self._devices.values())

    def _open(self) -> None:
        try:
            self.driver, self.cuda = self._library.open()
        except QueryFailed as error:
            # A machine without NVIDIA hardware has no trouble. It is tried again later, as a driver may be
            # installed.
            if error.code == LIBRARY_NOT_FOUND and not self._devices and not has_hardware():
                self.trouble = ""
                return
            raise LibraryLost(error.code, error.message) from error
        self._is_open = True
        # A thread cannot be started twice, and its calls hold handles of the session that has ended.
        self._background, self._event_handles = BackgroundReader(MEDIUM_S), set()
        self._checked_at = self._listed_at = float("-inf")

    def _close_library(self) -> None:
        # GPM samples belong to the open library, so devices free theirs before it is closed.
        for device in self._devices.values():
            device.detach()
        listener, self._listener = self._listener, None
        was_open, self._is_open = self._is_open, False
        hanging = [
            thread for thread in (listener, self._background) if thread is not None and not thread.close()
        ]
        if hanging:
            log.warning("The GPU driver does not answer; it is left as it is")
        elif was_open:
            self._library.close()

    def _is_list_due(self, now: float) -> bool:
        """Returns whether devices must be listed now. Listing costs real drivers milliseconds for each
        device, so it happens seldom, but more often while a device is lost."""
        if not self._listed_at <= now < self._listed_at + SLOW_S - JITTER_S:
            return True
        try:
            return self._library.count() != self._gpu_count or any(
                device.state != OK for device in self._devices.values()
            )
        except QueryFailed:
            return True

    def _list_devices(self, now: float) -> None:
        self._listed_at = now
        try:
            self._gpu_count = self._library.count()
            gpus = {gpu.uuid: gpu for gpu in self._library.list_gpus()}
        except QueryFailed as error:
            if not self._devices or not isinstance(error, DeviceLost):
                raise LibraryLost(error.code, error.message) from error
            # All devices are lost but the library itself works, so each device is marked as missing below.
            gpus = {}
        for uuid in self._devices.keys() - gpus.keys():
            self._on_missing(uuid, gpus)
        for uuid, gpu in gpus.items():
            if uuid not in self._devices:
                log.info("GPU %s: %s", uuid, gpu.name)
                self._devices[uuid] = GpuMonitor(gpu, self._processes, self._logged)
            self._devices[uuid].attach(gpu, self._library, self._background)
        self._devices = dict(
            sorted(self._devices.items(), key=lambda item: (item[1].gpu.index, bool(item[1].gpu.parent)))
        )
        self._listen(gpus.values())

    def _listen(self, gpus: Iterable[ListedGpu]) -> None:
        new = [gpu for gpu in gpus if not gpu.parent and gpu.handle_id not in self._event_handles]
        self._event_handles |= {gpu.handle_id for gpu in new}
        # A list and not a generator, with which `any` would stop registering at the first GPU that has
        # events.
        has_events = [self._library.register_events(gpu) for gpu in new]
        if self._listener is None and any(has_events):
            self._listener = GpuEventListener(self._library.wait_for_event, self._event_log)
            self._listener.start()

    def _on_missing(self, uuid: str, gpus: Mapping[str, ListedGpu]) -> None:
        device = self._devices[uuid]
        parent = device.gpu.parent
        if parent in gpus:
            device.detach()
            del self._devices[uuid]  # the operator has destroyed a MIG device of a working GPU
        elif device.state != LOST:
            self._mark_lost(device, MISSING_DEVICE)

    def _refresh_devices(self, now: float, *, is_fresh: bool) -> None:
        working: list[GpuMonitor] = []
        failing: list[tuple[GpuMonitor, QueryFailed]] = []
        for device in self._devices.values():
            if not device.is_attached or (device.state == LOST and not is_fresh):
                continue
            try:
                results = device.refresh(now)
            except DeviceLost as error:
                self._mark_lost(device, nvml_errors.device_advice(error))
                continue
            if results.succeeded:
                working.append(device)
            elif results.error is not None and results.failed >= MIN_FAILURES:
                failing.append((device, results.error))
        # All devices fail at the same moment: the fault is in the library or driver, and not in each device.
        if failing and not working:
            raise LibraryLost(failing[0][1].code, failing[0][1].message)
        for device, last in failing:
            self._mark_lost(device, nvml_errors.device_advice(last))
        for device in working:
            self._mark_ok(device)
        if working or not self._devices:
            self._mark_recovered()

    def _mark_lost(self, device: GpuMonitor, sentence: str) -> None:
        device.detach()
        previous, device.state, device.error = device.state, LOST, sentence
        # A MIG device is lost together with its GPU, whose event is enough.
        if previous != LOST and not device.gpu.parent:
            log.warning("GPU %s is lost. %s", device.gpu.uuid, sentence)
            self._event_log.add("lost", device.gpu.uuid, detail=sentence)

    def _mark_ok(self, device: GpuMonitor) -> None:
        previous, device.state, device.error = device.state, OK, ""
        if previous == LOST and not device.gpu.parent:
            log.warning("GPU %s is back", device.gpu.uuid)
            self._event_log.add("back", device.gpu.uuid)

    def _mark_library_lost(self, error: LibraryLost, now: float) -> None:
        self._close_library()
        # `_refresh` has set the time of the next attempt already if it was opening the library just now.
        if self._next_open_at <= now:
            self._next_open_at = now + self._backoff.next_s()
        sentence = nvml_errors.library_advice(error)
        if sentence != self.trouble:
            log.warning("No GPU can be read. %s", sentence)
        self.trouble = sentence
        if self._has_worked and not self._is_loss_recorded:
            self._is_loss_recorded = True
            self._event_log.add("nvml_lost", "", detail=sentence)
        for device in self._devices.values():
            if device.state != LOST:
                device.state, device.error = UNKNOWN, sentence

    def _mark_recovered(self) -> None:
        if self.trouble:
            log.info("GPUs can be read again")
        self.trouble = ""
        self._has_worked = True
        self._backoff.reset()
        if self._is_loss_recorded:
            self._is_loss_recorded = False
            self._event_log.add("nvml_back", "")


def has_hardware() -> bool:
    """Returns whether this machine has NVIDIA devices or their driver."""
    return Path("/proc/driver/nvidia").exists() or any(Path("/dev").glob("nvidia*"))
