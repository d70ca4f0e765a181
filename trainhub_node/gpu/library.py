"""What is needed of the management library of GPUs; `gpu.py` has it from NVML, and nothing else knows
NVML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainhub_node.gpu.gpu_events import LibraryEvent

FieldId = tuple[int, int]
"""A field's number in nvml.h, and its scope, such as a link."""
DirectQuery = tuple[tuple[str, ...], Callable[[Any], Mapping[str, float]]]
"""The keys of a question that a handle alone answers, and the question."""


@dataclass(frozen=True)
class ListedGpu:
    """A device as the library lists it now. `handle`: the library's own, good until it is closed, and
    `handle_id` what tells two of them apart. `instance`: of a MIG device, its GPU instance in
    `parent_handle`."""

    uuid: str
    index: int
    name: str
    handle: Any
    handle_id: int
    memory_bytes: int | None = None
    mig: bool = False
    parent: str = ""
    instance: int = 0
    parent_handle: Any = None

    @property
    def profile(self) -> str:
        """Of a MIG device "1g.10gb"; its name ends so."""
        _, separator, size = self.name.rpartition(" MIG ")
        return size if self.parent and separator else ""


class GpuLibrary(Protocol):
    """Its methods raise Unanswered or one of its kinds, unless they say otherwise."""

    def open(self) -> tuple[str, str]:
        """Initialise it; the versions of the driver and of CUDA, "" where not told."""

    def close(self) -> None:
        """Raises nothing. Nobody is inside any more, and no handle is used again."""

    def count(self) -> int:
        """How many GPUs there are, MIG devices not counted; cheap, where finding each costs milliseconds."""

    def list_gpus(self) -> list[ListedGpu]:
        """Every device that answers now, a GPU's MIG devices right after it; raises where there are some and
        none answers."""

    def register_events(self, gpu: ListedGpu) -> bool:
        """Have its events told by `wait`; False where it tells none. Raises nothing."""

    def wait_for_event(self) -> LibraryEvent:
        """The next event of any device; raises Unanswered, a TIMEOUT, when none came within about a
        second."""

    def direct_queries(self, gpu: ListedGpu) -> Sequence[DirectQuery]:
        """What is asked of the device by one call each."""

    def fields(self, handle: Any, field_ids: Sequence[FieldId], *, wide: bool = False) -> Mapping[FieldId, float]:
        """Those that answer, at least one. `wide`: 64-bit counters only."""

    def pcie_throughput(self, handle: Any) -> Mapping[str, float]:
        """Over PCIe, bytes a second. Takes 20 ms for each direction."""

    def has_gpm(self, gpu: ListedGpu) -> bool: ...

    def take_gpm_sample(self, gpu: ListedGpu) -> Any:
        """Of GPM, for `between`; `free` it afterwards."""

    def gpm_metrics(self, before: Any, after: Any, metrics: Sequence[int]) -> Mapping[int, float]:
        """Those of GPM's metrics that the device has, from one sample to the next."""

    def free_gpm_sample(self, sample: Any) -> None:
        """Raises nothing."""

    def processes(self, handle: Any) -> Mapping[int, int | None]:
        """Bytes of each process on the device; None where the driver cannot tell."""

    def process_utilization(self, handle: Any, since_us: int) -> Sequence[tuple[int, int, float]]:
        """(process id, µs of the wall clock, % of the SMs) of every sample since then; where there is none it
        raises Unanswered, NOT_FOUND or even SUCCESS."""
