"""The beat at which this machine is measured: once a second, whatever else it does."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from trainhub_launch.machine import GpuFact, Heartbeat
from trainhub_launch.telemetry import SAMPLE_S
from trainhub_node.machine.host import Host
from trainhub_node.settings import NodeSettings
from trainhub_node.telemetry.buckets import Recorder
from trainhub_node.telemetry.heartbeat import Beats, Looker

log = logging.getLogger(__name__)
PATIENCE_S = 0.5
"""A sample waits for the GPUs so long; then it is taken without them."""
FRESH_S = 2.0
"""Two of the fastest rhythms: so long a reading stands where the next one is late."""
HANGS_S = 5.0
FIRST_S = 10.0
EDGE = 0.05


class Devices(Protocol):
    """What trainhub_node.gpu.nvml offers; `now` in seconds of a steady clock."""

    driver: str
    cuda: str
    trouble: str

    def read(self, now: float) -> tuple[GpuFact, ...]: ...


class Sampler(threading.Thread):
    """`latest` never waits. Devices are read in a thread of their own: a driver that hangs stops neither the
    machine's other numbers nor reports. `ticked` is called after every sample."""

    def __init__(
        self,
        settings: NodeSettings,
        devices: Devices,
        recorder: Recorder,
        *,
        ticked: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name="sampler", daemon=True)
        self._devices = devices
        self._recorder = recorder
        self._ticked = ticked
        self._closing = threading.Event()
        self._host = Host(str(settings.folder))
        self._looker = Looker(settings)
        self._beats = Beats(settings)
        self._reader = _Reader(devices)
        self._reader.start()
        # A first word without GPUs would tell the hub that they are gone.
        self._reader.ask(FIRST_S)
        self._at = time.monotonic()
        self._said = False
        self._found = self._looker.inventory
        self._latest = self._beat(self._host.read(self._at, self._found.interface))

    def latest(self) -> Heartbeat:
        """From any thread."""
        if self._found is not self._looker.inventory:
            self._latest = self._beat(self._latest.numbers)
        silent = time.monotonic() - self._at
        if silent < HANGS_S or not self.is_alive():
            return self._latest
        if not self._said:
            self._said = True
            log.warning(
                "This machine has not been measured for %.0f s: reading its load or its disk hangs", silent
            )
        return replace(self._latest, numbers={}, gpus=tuple(_unread(gpu) for gpu in self._latest.gpus))

    def run(self) -> None:
        self._looker.start()
        due = time.monotonic()
        while not self._closing.is_set():
            try:
                due += self._tick(due)
            except Exception:
                log.exception("A sample of this machine failed")
            now = time.monotonic()
            due = following(due, now)
            self._closing.wait(due - now)

    def close(self) -> None:
        self._closing.set()
        self._looker.close()
        self._reader.close()

    def _tick(self, due: float) -> float:
        """Take one sample. The answer says by how much the next ones should come later, to stay away from the
        edge of a second, where jitter would put two into one and none into the next."""
        late = time.monotonic() - due
        wall, steady = time.time() - late, time.clock_gettime(time.CLOCK_BOOTTIME) - late
        self._reader.ask(PATIENCE_S)
        now = time.monotonic()
        numbers = self._host.read(now, self._looker.inventory.interface)
        fresh = now - self._reader.read_at <= FRESH_S
        self._recorder.add(
            wall, steady, numbers, {gpu.uuid: gpu.numbers for gpu in self._reader.facts} if fresh else {}
        )
        self._latest, self._at = self._beat(numbers), now
        if self._said:
            self._said = False
            log.info("This machine is measured again")
        self._ticked()
        part = wall % 1
        return 2 * EDGE if part < EDGE else -2 * EDGE if part > 1 - EDGE else 0.0

    def _beat(self, numbers: Mapping[str, float]) -> Heartbeat:
        self._found = self._looker.inventory
        devices, gpus = self._devices, self._reader.facts
        trouble = self._reader.trouble()
        stands = time.monotonic() - self._reader.read_at <= HANGS_S
        return self._beats.make(
            self._found,
            numbers,
            gpus if stands else tuple(_unread(gpu) for gpu in gpus),
            driver=devices.driver,
            cuda=devices.cuda,
            nvml=trouble or devices.trouble,
        )


def following(due: float, now: float) -> float:
    """When the sample after that of `due` is to be taken. Those that were missed are skipped, not made up
    for, and the rest keep their distance from the first."""
    return due + SAMPLE_S * max(1, math.ceil((now - due) / SAMPLE_S))


class _Reader(threading.Thread):
    """Asks the devices when it is asked to; one that still waits for an answer is not asked again."""

    def __init__(self, devices: Devices) -> None:
        super().__init__(name="gpus", daemon=True)
        self.facts: tuple[GpuFact, ...] = ()
        self.read_at = float("-inf")
        self._devices = devices
        self._asked, self._done = threading.Event(), threading.Event()
        self._done.set()
        self._began = (0.0, 0.0)
        self._closing = False
        self._failed = ""
        self._said = False

    def ask(self, patience_s: float) -> None:
        """Until there is a reading, at most `patience_s`."""
        if not self._done.is_set():
            return
        self._done.clear()
        self._began = time.monotonic(), time.time()
        self._asked.set()
        self._done.wait(patience_s)

    def trouble(self) -> str:
        """A sentence where a reading hangs. It stays the same, because a new one is told at once."""
        steady, wall = self._began
        hangs = not self._done.is_set() and time.monotonic() - steady > HANGS_S
        if hangs != self._said:
            self._said = hangs
            if hangs:
                log.warning("Reading the GPUs has taken more than %.0f s; all else goes on", HANGS_S)
            else:
                log.info("The GPUs answer again")
        at = f"{datetime.fromtimestamp(wall, UTC):%Y-%m-%d %H:%M:%S} UTC"
        return (
            f"The GPUs' driver has not answered since {at}; look at the kernel's log for it." if hangs else ""
        )

    def run(self) -> None:
        while self._asked.wait() and not self._closing:
            self._asked.clear()
            try:
                self.facts = self._devices.read(time.monotonic())
                self.read_at = time.monotonic()
                self._failed = ""
            except Exception as error:
                if self._failed != repr(error):
                    self._failed = repr(error)
                    log.exception("Reading the GPUs failed, and is tried again")
            self._done.set()

    def close(self) -> None:
        self._closing = True
        self._asked.set()


def _unread(gpu: GpuFact) -> GpuFact:
    return replace(gpu, numbers={}, counters={}, processes=())
