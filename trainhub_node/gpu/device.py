"""One device over time: what it told last, who works on it, and whether it is there."""

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
from trainhub_node.gpu.background_reader import SlowReader
from trainhub_node.gpu.gpu_processes import Processes
from trainhub_node.gpu.library import Found, Library
from trainhub_node.gpu.reader import Reader
from trainhub_node.gpu.readings import EARLY_S, STANDS, Reading, Readings, Round

WELL, LOST, UNREAD = "well", "lost", "unread"
"""UNREAD: the library is lost as a whole, so nobody knows about the device."""
SILENT_FROM = 3
"""A device that fails so many questions at once and answers none is lost."""
WINDOW_US = 10_000_000


class Device:
    def __init__(self, found: Found, processes: Processes, said: set[tuple[str, str]]) -> None:
        self.found = found
        self.state = WELL
        self.error = ""
        self._faces = processes
        self._said = said
        self._reader: Reader | None = None
        self._readings: Readings | None = None
        self._processes: tuple[GpuProcess, ...] = ()
        self._processes_at = float("-inf")
        self._sm_pct: Mapping[int, float] = {}
        self._used_until_us = 0

    @property
    def is_attached(self) -> bool:
        return self._reader is not None

    def attach(self, found: Found, library: Library, slow: SlowReader) -> None:
        """It is listed: as before, anew, or with another handle."""
        was, self.found = (
            self.found,
            replace(found, memory_bytes=found.memory_bytes or self.found.memory_bytes),
        )
        if self._reader is not None and (found.handle_id, found.mig) == (was.handle_id, was.mig):
            return
        self.detach()
        self._reader = Reader(found, library, slow)
        self._readings = Readings(found.uuid, (*self._reader.table(), *self._own(self._reader)), self._said)

    def detach(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = self._readings = None
        self._processes_at = float("-inf")

    def take(self, now: float) -> Round:
        return self._readings.take(now) if self._readings is not None else Round(0, 0)

    def fact(self, now: float, counters: Mapping[str, int]) -> GpuFact:
        """Of a device that does not answer only what stays true: no numbers, but the XIDs that it died
        with."""
        bare = GpuFact(
            uuid=self.found.uuid,
            index=self.found.index,
            name=self.found.name,
            memory_bytes=self.found.memory_bytes,
            counters=counters,
            state=GPU_OK if self.state == WELL else GPU_LOST,
            error=self.error,
            parent=self.found.parent,
            profile=self.found.profile,
            mig=self.found.mig,
        )
        if self.state != WELL or self._readings is None:
            return bare
        stands = now - self._processes_at <= STANDS * MEDIUM_S + EARLY_S
        return replace(
            bare,
            numbers=self._readings.numbers(now),
            counters={**self._readings.counters(now), **counters},
            processes=self._processes if stands else (),
        )

    def _own(self, reader: Reader) -> Sequence[Reading]:
        """A GPU in MIG mode runs nothing itself; its MIG devices do."""
        if self.found.mig:
            return ()
        return [  # use first: the list shows it
            Reading(("process_sm",), partial(self._take_usage, reader)),
            Reading(("processes",), partial(self._take_list, reader)),
        ]

    def _take_usage(self, reader: Reader, _: float) -> Mapping[str, float]:
        """A process without a sample was not seen working: that is not known, and not 0."""
        self._sm_pct = {}
        until = time.time_ns() // 1000
        # Also when the machine's clock was set back: nothing would be newer for as long.
        if not until - WINDOW_US <= self._used_until_us <= until:
            self._used_until_us = until - WINDOW_US
        seen = reader.usage(self._used_until_us)
        each = defaultdict(list)
        for pid, _at, sm_pct in seen:
            if 0 <= sm_pct <= 100:  # drivers are known to tell nonsense for processes that have just ended
                each[pid].append(sm_pct)
        self._used_until_us = max((at for _, at, _ in seen), default=self._used_until_us)
        self._sm_pct = {pid: fmean(values) for pid, values in each.items()}
        return {}

    def _take_list(self, reader: Reader, now: float) -> Mapping[str, float]:
        self._processes = self._faces.told(reader.processes(), self._sm_pct)
        self._processes_at = now
        return {}
