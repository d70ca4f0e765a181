"""The interface to a GPU management library. `nvml.py` implements it with NVML; no other module uses NVML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainhub_node.gpu.gpu_events import LibraryEvent

# A field's number in nvml.h, and its scope, such as a link.
FieldId = tuple[int, int]
# The keys of a query that needs only a handle, and the call.
DirectQuery = tuple[tuple[str, ...], Callable[[Any], Mapping[str, float]]]


@dataclass(frozen=True)
class ListedGpu:
    """A device as the library lists it now.

    `handle`: the library's own, valid until the library is closed; `handle_id` identifies it. `instance`:
    for a MIG device, its GPU instance in `parent_handle`."""

    uuid: str
    index: int
    name: str
    handle: object
    handle_id: int
    memory_bytes: int | None = None
    mig: bool = False
    parent: str = ""
    instance: int = 0
    parent_handle: object = None

    @property
    def profile(self) -> str:
        """The profile of a MIG device, such as "1g.10gb", with which its name ends; "" for a GPU."""
        _, separator, size = self.name.rpartition(" MIG ")
        return size if self.parent and separator else ""


class GpuLibrary(Protocol):
    """All methods raise QueryFailed or one of its kinds, unless they say otherwise."""

    def open(self) -> tuple[str, str]:
        """Initialises the library. Returns the versions of the driver and of CUDA, "" if unknown."""

    def close(self) -> None:
        """Closes the library. Raises nothing. The caller ensures that no call is running and no handle is
        used again."""

    def count(self) -> int:
        """Returns the number of GPUs without MIG devices. This is cheap, while listing takes milliseconds for
        each GPU."""

    def list_gpus(self) -> list[ListedGpu]:
        """Returns every device that answers, each GPU followed by its MIG devices.

        Raises QueryFailed if there are devices and none answers."""

    def register_events(self, gpu: ListedGpu) -> bool:
        """Makes `wait_for_event` return this GPU's events. Returns False if it has none. Raises nothing."""

    def wait_for_event(self) -> LibraryEvent:
        """Returns the next event of any device. Raises QueryFailed with TIMEOUT after about a second
        without one."""

    def direct_queries(self, gpu: ListedGpu) -> Sequence[DirectQuery]:
        """Returns the queries that need one call each."""

    def fields(
        self, handle: object, field_ids: Sequence[FieldId], *, wide: bool = False
    ) -> Mapping[FieldId, float]:
        """Returns the fields that answer, at least one. `wide`: only 64-bit counters."""

    def pcie_throughput(self, handle: object) -> Mapping[str, float]:
        """Returns the PCIe traffic in bytes per second. Takes 20 ms for each direction."""

    def has_gpm(self, gpu: ListedGpu) -> bool: ...

    def take_gpm_sample(self, gpu: ListedGpu) -> object:
        """Returns a GPM sample for `gpm_metrics`. The caller frees it with `free_gpm_sample`."""

    def gpm_metrics(self, before: object, after: object, metrics: Sequence[int]) -> Mapping[int, float]:
        """Returns those of the metrics that the device has, over the time between two samples."""

    def free_gpm_sample(self, sample: object) -> None:
        """Frees a sample of `take_gpm_sample`. Raises nothing."""

    def processes(self, handle: object) -> Mapping[int, int | None]:
        """Returns the bytes of each process on the device, None where the driver has no figure."""

    def process_utilization(self, handle: object, since_us: int) -> Sequence[tuple[int, int, float]]:
        """Returns (process id, wall clock in µs, SM share in %) of every sample since `since_us`.

        Without a sample it raises QueryFailed with the code NOT_FOUND, or even SUCCESS."""
