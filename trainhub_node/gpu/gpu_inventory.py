"""The devices of this machine over time: found, lost, back; and the library that tells of them, which may
itself come and go."""

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
from trainhub_node.gpu.background_reader import SlowReader
from trainhub_node.gpu.device import LOST, SILENT_FROM, UNREAD, WELL, Device
from trainhub_node.gpu.gpu_events import EventBook, Listener
from trainhub_node.gpu.gpu_processes import Owner, Processes
from trainhub_node.gpu.library import Found, Library
from trainhub_node.gpu.nvml_errors import LIBRARY_NOT_FOUND, DeviceGone, LibraryGone, Unanswered
from trainhub_node.gpu.readings import EARLY_S

log = logging.getLogger(__name__)
MOST_WAIT_S = 60.0
PATIENCE_S = 10.0
VANISHED = (
    "It is no longer among the devices of this machine: look into dmesg; a reboot usually brings it back."
)


class Roster:
    """`read` is one thread's; everything else may be called from any. `now`: seconds of a clock that never
    jumps."""

    def __init__(self, library: Library, owner_of: Callable[[int], Owner | None]) -> None:
        self.driver = self.cuda = self.trouble = ""
        self._library = library
        self._processes = Processes(owner_of)
        self._book = EventBook()
        self._devices: dict[str, Device] = {}
        self._said: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._backoff = Backoff(MOST_WAIT_S)
        self._listener: Listener | None = None
        self._slow = SlowReader(MEDIUM_S)
        self._heard: set[int] = set()
        self._is_open = self._is_closed = False
        self._has_worked = self._loss_told = False
        self._open_at = self._looked_at = self._listed_at = float("-inf")
        self._counted = 0

    def read(self, now: float) -> tuple[GpuFact, ...]:
        """Every device that was ever seen, also one that is lost. Asks what is due; in between the last
        answers stand."""
        with self._lock:
            try:
                if not self._is_closed:
                    self._round(now)
            except LibraryGone as error:
                self._lose_library(error, now)
            return tuple(
                device.fact(now, self._book.counters(uuid)) for uuid, device in self._devices.items()
            )

    def events(self) -> tuple[GpuEvent, ...]:
        """All that are not confirmed, oldest first."""
        return self._book.all()

    def confirm(self, serial: int) -> None:
        """Events up to this one are known to the hub."""
        self._book.confirm(serial)

    def close(self) -> None:
        """Waits for a reading under way, but not for ever: a driver may hang."""
        if not self._lock.acquire(timeout=PATIENCE_S):
            log.warning("The GPU driver does not answer; it is left as it is")
            return
        try:
            self._is_closed = True
            self._close_library()
        finally:
            self._lock.release()

    def _round(self, now: float) -> None:
        if now >= self._open_at and (not self._is_open or self._all_lost):
            # Also for devices: one that comes back may be known only to a library that is initialised after
            # it.
            self._close_library()
            self._open_at = now + self._backoff.next_s()
            self._open()
        if not self._is_open:
            return
        is_fresh = not self._looked_at <= now < self._looked_at + MEDIUM_S - EARLY_S
        if is_fresh:
            self._looked_at = now
            if self._is_list_due(now):
                self._list(now)
        self._ask(now, is_fresh=is_fresh)

    @property
    def _all_lost(self) -> bool:
        return bool(self._devices) and all(device.state == LOST for device in self._devices.values())

    def _open(self) -> None:
        try:
            self.driver, self.cuda = self._library.open()
        except Unanswered as error:
            if error.code == LIBRARY_NOT_FOUND and not self._devices and not has_hardware():
                self.trouble = ""
                return
            raise LibraryGone(error.code, error.said) from error
        self._is_open = True
        self._slow, self._heard = SlowReader(MEDIUM_S), set()
        self._looked_at = self._listed_at = float("-inf")

    def _close_library(self) -> None:
        for device in self._devices.values():
            device.detach()
        listener, self._listener = self._listener, None
        was_open, self._is_open = self._is_open, False
        waited_for = [
            thread for thread in (listener, self._slow) if thread is not None and not thread.close()
        ]
        if waited_for:
            log.warning("The GPU driver does not answer; it is left as it is")
        elif was_open:
            self._library.close()

    def _is_list_due(self, now: float) -> bool:
        """Listing costs real drivers milliseconds a device; a lost one is looked for more often."""
        if not self._listed_at <= now < self._listed_at + SLOW_S - EARLY_S:
            return True
        try:
            return self._library.count() != self._counted or any(
                device.state != WELL for device in self._devices.values()
            )
        except Unanswered:
            return True

    def _list(self, now: float) -> None:
        self._listed_at = now
        try:
            self._counted = self._library.count()
            listed = {found.uuid: found for found in self._library.listed()}
        except Unanswered as error:
            if not self._devices or not isinstance(error, DeviceGone):
                raise LibraryGone(error.code, error.said) from error
            listed = {}
        for uuid in self._devices.keys() - listed.keys():
            self._miss(uuid, listed)
        for uuid, found in listed.items():
            if uuid not in self._devices:
                log.info("GPU %s: %s", uuid, found.name)
                self._devices[uuid] = Device(found, self._processes, self._said)
            self._devices[uuid].attach(found, self._library, self._slow)
        self._devices = dict(
            sorted(self._devices.items(), key=lambda item: (item[1].found.index, bool(item[1].found.parent)))
        )
        self._listen(listed.values())

    def _listen(self, listed: Iterable[Found]) -> None:
        fresh = [found for found in listed if not found.parent and found.handle_id not in self._heard]
        self._heard |= {found.handle_id for found in fresh}
        hears = [self._library.hear(found) for found in fresh]
        if self._listener is None and any(hears):
            self._listener = Listener(self._library.wait, self._book)
            self._listener.start()

    def _miss(self, uuid: str, listed: Mapping[str, Found]) -> None:
        device = self._devices[uuid]
        parent = device.found.parent
        if parent in listed:
            device.detach()
            del self._devices[uuid]  # a MIG device of a GPU that is there was taken apart by its owner
        elif device.state != LOST:
            self._lose(device, VANISHED)

    def _ask(self, now: float, *, is_fresh: bool) -> None:
        well: list[Device] = []
        silent: list[tuple[Device, Unanswered]] = []
        for device in self._devices.values():
            if not device.is_attached or (device.state == LOST and not is_fresh):
                continue
            try:
                told = device.take(now)
            except DeviceGone as error:
                self._lose(device, nvml_errors.loss(error))
                continue
            if told.answered:
                well.append(device)
            elif told.error is not None and told.failed >= SILENT_FROM:
                silent.append((device, told.error))
        if silent and not well:
            raise LibraryGone(silent[0][1].code, silent[0][1].said)
        for device, last in silent:
            self._lose(device, nvml_errors.loss(last))
        for device in well:
            self._welcome(device)
        if well or not self._devices:
            self._recover()

    def _lose(self, device: Device, sentence: str) -> None:
        device.detach()
        was, device.state, device.error = device.state, LOST, sentence
        if was != LOST and not device.found.parent:
            log.warning("GPU %s is lost. %s", device.found.uuid, sentence)
            self._book.add("lost", device.found.uuid, detail=sentence)

    def _welcome(self, device: Device) -> None:
        was, device.state, device.error = device.state, WELL, ""
        if was == LOST and not device.found.parent:
            log.warning("GPU %s is back", device.found.uuid)
            self._book.add("back", device.found.uuid)

    def _lose_library(self, error: LibraryGone, now: float) -> None:
        self._close_library()
        if self._open_at <= now:
            self._open_at = now + self._backoff.next_s()
        sentence = nvml_errors.trouble(error)
        if sentence != self.trouble:
            log.warning("No GPU can be read. %s", sentence)
        self.trouble = sentence
        if self._has_worked and not self._loss_told:
            self._loss_told = True
            self._book.add("nvml_lost", "", detail=sentence)
        for device in self._devices.values():
            if device.state != LOST:
                device.state, device.error = UNREAD, sentence

    def _recover(self) -> None:
        if self.trouble:
            log.warning("GPUs can be read again")
        self.trouble = ""
        self._has_worked = True
        self._backoff.reset()
        if self._loss_told:
            self._loss_told = False
            self._book.add("nvml_back", "")


def has_hardware() -> bool:
    """Whether this machine has NVIDIA devices or their driver."""
    return Path("/proc/driver/nvidia").exists() or any(Path("/dev").glob("nvidia*"))
