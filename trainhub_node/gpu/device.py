"""The state, the latest numbers and the processes of one GPU over time."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

from trainhub_launch.machine import GPU_LOST, GPU_OK, GpuFact
from trainhub_launch.metrics import MEDIUM_S
from trainhub_launch.telemetry import GpuProcess
from trainhub_node.gpu.background_reader import BackgroundReader
from trainhub_node.gpu.gpu_processes import ProcessInfo
from trainhub_node.gpu.library import GpuLibrary, ListedGpu
from trainhub_node.gpu.reader import GpuReader
from trainhub_node.gpu.readings import JITTER_S, VALID_INTERVALS, Reading, ReadingResults, Readings

# UNKNOWN: no call to the library works, so the state of the device cannot be read.
OK, LOST, UNKNOWN = "ok", "lost", "unknown"
# A device that fails at least this many calls in one round, and answers none, is lost.
MIN_FAILURES = 3
# Process utilization is read for at most this long into the past.
WINDOW_US = 10_000_000


class GpuMonitor:
    """A GPU or MIG device. `logged` holds the (device, reading) pairs that the log has mentioned already."""

    def __init__(self, gpu: ListedGpu, processes: ProcessInfo, logged: set[tuple[str, str]]) -> None:
        self.gpu = gpu
        self.state = OK
        self.error = ""
        self._process_info = processes
        self._logged = logged
        self._reader: GpuReader | None = None
        self._readings: Readings | None = None
        self._processes: tuple[GpuProcess, ...] = ()
        self._processes_at = float("-inf")
        self._sm_pct: Mapping[int, float] = {}
        self._utilization_until_us = 0

    @property
    def is_attached(self) -> bool:
        return self._reader is not None

    def attach(self, gpu: ListedGpu, library: GpuLibrary, background: BackgroundReader) -> None:
        """Prepares the readings of a device that the library lists now. If its handle is unchanged, the
        present readings continue."""
        # A listing in which the memory call failed must not erase the known size.
        previous, self.gpu = (
            self.gpu,
            replace(gpu, memory_bytes=gpu.memory_bytes or self.gpu.memory_bytes),
        )
        # Rates need the previous counters and GPM sample, which a new reader would not have.
        if self._reader is not None and (gpu.handle_id, gpu.mig) == (previous.handle_id, previous.mig):
            return
        self.detach()
        self._reader = GpuReader(gpu, library, background)
        self._readings = Readings(
            gpu.uuid, (*self._reader.readings(), *self._process_readings(self._reader)), self._logged
        )

    def detach(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = self._readings = None
        self._processes_at = float("-inf")

    def refresh(self, now: float) -> ReadingResults:
        """Takes the readings that are due. Raises DeviceLost and LibraryLost."""
        return self._readings.refresh(now) if self._readings is not None else ReadingResults(0, 0)

    def fact(self, now: float, counters: Mapping[str, int]) -> GpuFact:
        """Returns the device for a heartbeat. For a device that does not answer, the fact has no numbers,
        only `counters`, which hold its XID errors."""
        identity = GpuFact(
            uuid=self.gpu.uuid,
            index=self.gpu.index,
            name=self.gpu.name,
            memory_bytes=self.gpu.memory_bytes,
            counters=counters,
            state=GPU_OK if self.state == OK else GPU_LOST,
            error=self.error,
            parent=self.gpu.parent,
            profile=self.gpu.profile,
            mig=self.gpu.mig,
        )
        if self.state != OK or self._readings is None:
            return identity
        is_current = now - self._processes_at <= VALID_INTERVALS * MEDIUM_S + JITTER_S
        return replace(
            identity,
            numbers=self._readings.numbers(now),
            counters={**self._readings.counters(now), **counters},
            processes=self._processes if is_current else (),
        )

    def _process_readings(self, reader: GpuReader) -> Sequence[Reading]:
        """Returns the readings of processes, none for a GPU in MIG mode: only its MIG devices run
        processes."""
        if self.gpu.mig:
            return ()
        return [  # utilization first, because the list shows it
            Reading(("process_sm",), partial(self._read_utilization, reader)),
            Reading(("processes",), partial(self._read_processes, reader)),
        ]

    def _read_utilization(self, reader: GpuReader, _: float) -> Mapping[str, float]:
        """Reads the mean SM share of each process. A process without a sample is absent, because its share is
        unknown and not 0."""
        # Cleared before the call: if it fails, the next process list must not show shares of an earlier one.
        self._sm_pct = {}
        now_us = time.time_ns() // 1000
        # Also when the wall clock was set back: until it catches up, no sample would be newer.
        if not now_us - WINDOW_US <= self._utilization_until_us <= now_us:
            self._utilization_until_us = now_us - WINDOW_US
        samples = reader.process_utilization(self._utilization_until_us)
        by_pid = defaultdict(list)
        for pid, _at, sm_pct in samples:
            if 0 <= sm_pct <= 100:  # drivers return nonsense for ended processes
                by_pid[pid].append(sm_pct)
        # NVML returns samples that are newer than the time passed to it, so no sample is averaged twice.
        self._utilization_until_us = max((at for _, at, _ in samples), default=self._utilization_until_us)
        self._sm_pct = {pid: fmean(values) for pid, values in by_pid.items()}
        return {}

    def _read_processes(self, reader: GpuReader, now: float) -> Mapping[str, float]:
        self._processes = self._process_info.describe(reader.processes(), self._sm_pct)
        self._processes_at = now
        return {}
