"""Measures this machine once a second."""

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
from trainhub_launch.telemetry import SAMPLE_S, RankRead
from trainhub_node.machine.host import HostMetrics
from trainhub_node.settings import NodeSettings
from trainhub_node.telemetry.buckets import Recorder
from trainhub_node.telemetry.heartbeat import HeartbeatBuilder, InventoryThread

log = logging.getLogger(__name__)
# How long a sample waits for the GPUs before it is taken without them.
GPU_TIMEOUT_S = 0.5
# How long a GPU reading stays valid when the next one is late: two of the shortest intervals.
MAX_AGE_S = 2.0
HANG_S = 5.0
FIRST_TIMEOUT_S = 10.0
EDGE_S = 0.05


class GpuSource(Protocol):
    """The interface of `trainhub_node.gpu.nvml.nvml_library.Gpus`. `now`: seconds of a steady clock."""

    driver: str
    cuda: str
    trouble: str

    def read(self, now: float) -> tuple[GpuFact, ...]: ...


class Sampler(threading.Thread):
    """A thread that takes a sample of this machine every second. `latest` never blocks; `on_sample` is called
    after every sample. `read_ranks`: how fast ranks read, at a time of a steady clock.

    GPUs are read in a thread of their own, so that a driver that hangs delays neither other numbers nor
    reports."""

    def __init__(
        self,
        settings: NodeSettings,
        devices: GpuSource,
        recorder: Recorder,
        *,
        read_ranks: Callable[[float], tuple[RankRead, ...]] = lambda _: (),
        on_sample: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name="sampler", daemon=True)
        self._devices = devices
        self._recorder = recorder
        self._read_ranks = read_ranks
        self._reads: tuple[RankRead, ...] = ()
        self._on_sample = on_sample
        self._closing = threading.Event()
        self._host = HostMetrics(str(settings.folder))
        self._inventory_thread = InventoryThread(settings)
        self._builder = HeartbeatBuilder(settings)
        self._reader = _GpuThread(devices)
        self._reader.start()
        # A first heartbeat without GPUs would report to the hub that they are gone.
        self._reader.request(FIRST_TIMEOUT_S)
        self._sampled_at = time.monotonic()
        self._is_hang_logged = False
        self._inventory = self._inventory_thread.inventory
        self._latest = self._heartbeat(self._host.read(self._sampled_at, self._inventory.interface))

    def latest(self) -> Heartbeat:
        """Returns the latest heartbeat; may be called from any thread."""
        if self._inventory is not self._inventory_thread.inventory:
            self._latest = self._heartbeat(self._latest.numbers)
        silent_s = time.monotonic() - self._sampled_at
        if silent_s < HANG_S or not self.is_alive():
            return self._latest
        if not self._is_hang_logged:
            self._is_hang_logged = True
            log.warning(
                "This machine has not been measured for %.0f s: reading its load or its disk hangs", silent_s
            )
        # Without numbers: those from before the hang would look current.
        return replace(
            self._latest,
            numbers={},
            reads=(),
            gpus=tuple(_without_readings(gpu) for gpu in self._latest.gpus),
        )

    def run(self) -> None:
        self._inventory_thread.start()
        due = time.monotonic()
        while not self._closing.is_set():
            try:
                due += self._take_sample(due)
            except Exception:
                log.exception("A sample of this machine failed")
            now = time.monotonic()
            due = next_due(due, now)
            self._closing.wait(due - now)

    def close(self) -> None:
        self._closing.set()
        self._inventory_thread.close()
        self._reader.close()

    def _take_sample(self, due: float) -> float:
        """Takes one sample.

        Returns the seconds by which to move later samples. Near the edge of a second, jitter would put two
        samples into one second and none into the next."""
        delay = time.monotonic() - due
        # Unlike the monotonic clock, CLOCK_BOOTTIME also counts the time in which the machine sleeps. Without
        # that, each wake-up would look like a wall clock that was set.
        wall, steady = time.time() - delay, time.clock_gettime(time.CLOCK_BOOTTIME) - delay
        self._reader.request(GPU_TIMEOUT_S)
        now = time.monotonic()
        numbers = self._host.read(now, self._inventory_thread.inventory.interface)
        self._reads = self._read_ranks(now)
        is_fresh = now - self._reader.read_at <= MAX_AGE_S
        self._recorder.add(
            wall, steady, numbers, {gpu.uuid: gpu.numbers for gpu in self._reader.facts} if is_fresh else {}
        )
        self._latest, self._sampled_at = self._heartbeat(numbers), now
        if self._is_hang_logged:
            self._is_hang_logged = False
            log.info("This machine is measured again")
        self._on_sample()
        fraction = wall % 1
        return 2 * EDGE_S if fraction < EDGE_S else -2 * EDGE_S if fraction > 1 - EDGE_S else 0.0

    def _heartbeat(self, numbers: Mapping[str, float]) -> Heartbeat:
        self._inventory = self._inventory_thread.inventory
        devices, gpus = self._devices, self._reader.facts
        error = self._reader.error()
        is_current = time.monotonic() - self._reader.read_at <= HANG_S
        return self._builder.build(
            self._inventory,
            numbers,
            gpus if is_current else tuple(_without_readings(gpu) for gpu in gpus),
            driver=devices.driver,
            cuda=devices.cuda,
            nvml=error or devices.trouble,
            reads=self._reads,
        )


def next_due(due: float, now: float) -> float:
    """Returns when the sample after the one of `due` must be taken. Missed samples are skipped; the times
    stay multiples of SAMPLE_S apart."""
    return due + SAMPLE_S * max(1, math.ceil((now - due) / SAMPLE_S))


class _GpuThread(threading.Thread):
    """Reads the GPUs on request. While one reading hangs, no further one starts."""

    def __init__(self, devices: GpuSource) -> None:
        super().__init__(name="gpus", daemon=True)
        self.facts: tuple[GpuFact, ...] = ()
        self.read_at = float("-inf")
        self._devices = devices
        self._requested, self._finished = threading.Event(), threading.Event()
        self._finished.set()
        self._requested_at = (0.0, 0.0)
        self._closing = False
        self._last_error = ""
        self._is_hang_logged = False

    def request(self, timeout_s: float) -> None:
        """Requests a reading and waits for it, at most `timeout_s`. Returns at once while an earlier one
        hangs."""
        if not self._finished.is_set():
            return
        self._finished.clear()
        self._requested_at = time.monotonic(), time.time()
        self._requested.set()
        self._finished.wait(timeout_s)

    def error(self) -> str:
        """Returns a sentence while a reading hangs, else "". The sentence stays the same for one hang,
        because a changed one would be reported at once."""
        steady, wall = self._requested_at
        is_hanging = not self._finished.is_set() and time.monotonic() - steady > HANG_S
        if is_hanging != self._is_hang_logged:
            self._is_hang_logged = is_hanging
            if is_hanging:
                log.warning("Reading the GPUs takes more than %.0f s; everything else continues", HANG_S)
            else:
                log.info("The GPUs answer again")
        started_at = f"{datetime.fromtimestamp(wall, UTC):%Y-%m-%d %H:%M:%S} UTC"
        return (
            f"The GPU driver has not answered since {started_at}; check the kernel log (dmesg)."
            if is_hanging
            else ""
        )

    def run(self) -> None:
        while self._requested.wait() and not self._closing:
            self._requested.clear()
            try:
                self.facts = self._devices.read(time.monotonic())
                self.read_at = time.monotonic()
                self._last_error = ""
            except Exception as error:
                if self._last_error != repr(error):
                    self._last_error = repr(error)
                    log.exception("Reading the GPUs failed; it is retried")
            self._finished.set()

    def close(self) -> None:
        self._closing = True
        self._requested.set()


def _without_readings(gpu: GpuFact) -> GpuFact:
    return replace(gpu, numbers={}, counters={}, processes=())
