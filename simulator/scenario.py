"""A scenario as Python values, and the file from which the library reads it. simulator/README.md describes
both."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from simulator.curves import Curve, as_curve

HEADER = "nvml-simulator 1"
# nvmlEventTypeXidCriticalError in nvml.h.
XID = 8

# Values of nvmlReturn_t in nvml.h.
DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, NO_PERMISSION, LIB_RM_VERSION_MISMATCH = 9, 12, 4, 18
NOT_SUPPORTED, GPU_IS_LOST, RESET_REQUIRED, UNKNOWN = 3, 15, 16, 999

Values = Mapping[str, Curve | float]


@dataclass(frozen=True)
class Process:
    """A process on a GPU. `memory_bytes` None: the driver does not know it, as in a container."""

    pid: int
    memory_bytes: int | None = 2**30
    sm_pct: int = 50
    memory_pct: int = 20
    encoder_pct: int = 0
    decoder_pct: int = 0
    kind: Literal["compute", "graphics"] = "compute"


@dataclass(frozen=True)
class Event:
    """An event that NVML delivers. `at`: Unix time. Only processes that registered before that time receive
    it."""

    at: float
    data: int
    type: int = XID


def xid(code: int, at: float | None = None) -> Event:
    """Returns an XID error at the Unix time `at`, by default now."""
    return Event(time.time() if at is None else at, code)


@dataclass
class SimMig:
    """A MIG device."""

    uuid: str
    name: str
    values: dict[str, Curve | float]
    gpu_instance: int = 1
    compute_instance: int = 0
    gpu_slices: int = 1
    compute_slices: int = 1
    multiprocessors: int = 16
    processes: Sequence[Process] | Literal["visible"] = ()


@dataclass
class SimGpu:
    """One GPU. It does not support metrics that have no value here.

    `unsupported`: names of calls, also "field:82" and "gpm:5". `errors`: call -> NVML's code. `delays_ms`:
    call -> how long it hangs. `processes` "visible": every process of this machine that was given the UUID in
    CUDA_VISIBLE_DEVICES.
    `removed`: it fell off the bus, and every call on it says so.
    """

    uuid: str
    name: str
    values: dict[str, Curve | float]
    compute: tuple[int, int] = (9, 0)
    architecture: int = 9
    gpm: bool = True
    unsupported: set[str] = field(default_factory=set)
    errors: dict[str, int] = field(default_factory=dict)
    delays_ms: dict[str, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    processes: Sequence[Process] | Literal["visible"] = ()
    removed: bool = False
    mig: list[SimMig] = field(default_factory=list)


@dataclass
class Scenario:
    """`init_error`: NVML's code with which nvmlInit fails. `call_error`: with which every call does, of
    whoever had it open.
    `epoch`: counting it up is a driver that was loaded anew: who had it open must open it again. CUDA 12080
    is 12.8."""

    gpus: list[SimGpu] = field(default_factory=list)
    driver: str = "570.124.06"
    cuda: int = 12080
    init_error: int = 0
    call_error: int = 0
    epoch: int = 0
    start: float = field(default_factory=time.time)

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def write(self, path: Path) -> Path:
        """Writes the scenario to `path` and returns the path."""
        # Renamed in one step: the library reads the file again in the middle of a call, and must find the old
        # scenario or the new one, never half of one. The process id keeps two writers apart.
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(self.text())
        fresh.replace(path)
        return path

    def _lines(self) -> Iterator[str]:
        yield HEADER
        yield f"start {self.start!r}"
        yield f"driver {self.driver}"
        yield f"nvml {self.cuda // 1000}.{self.driver}"
        yield f"cuda {self.cuda}"
        yield f"init_error {self.init_error}"
        yield f"call_error {self.call_error}"
        yield f"epoch {self.epoch}"
        for gpu in self.gpus:
            yield from _gpu(gpu)


def _gpu(gpu: SimGpu) -> Iterator[str]:
    yield f"gpu {gpu.uuid}"
    yield f"name {gpu.name}"
    yield f"compute {gpu.compute[0]} {gpu.compute[1]}"
    yield f"architecture {gpu.architecture}"
    yield from ["gpm"] * gpu.gpm + ["removed"] * gpu.removed
    yield from _values(gpu.values)
    yield from (f"unsupported {call}" for call in sorted(gpu.unsupported))
    yield from (f"error {call} {code}" for call, code in gpu.errors.items())
    yield from (f"delay {call} {milliseconds}" for call, milliseconds in gpu.delays_ms.items())
    yield from (f"event {event.at!r} {event.type} {event.data}" for event in gpu.events)
    yield from _processes(gpu.processes)
    for part in gpu.mig:
        yield f"mig {part.uuid}"
        yield f"name {part.name}"
        yield f"instance {part.gpu_instance} {part.compute_instance}"
        yield f"slices {part.gpu_slices} {part.compute_slices}"
        yield f"multiprocessors {part.multiprocessors}"
        yield from _values(part.values)
        yield from _processes(part.processes)


def _values(values: Values) -> Iterator[str]:
    return (f"value {key} {as_curve(value).text()}" for key, value in values.items())


def _processes(processes: Sequence[Process] | Literal["visible"]) -> Iterator[str]:
    if isinstance(processes, str):
        yield "visible"
        return
    for one in processes:
        memory = "-" if one.memory_bytes is None else one.memory_bytes
        use = f"{one.sm_pct} {one.memory_pct} {one.encoder_pct} {one.decoder_pct}"
        yield f"process {one.pid} {memory} {use} {one.kind}"
