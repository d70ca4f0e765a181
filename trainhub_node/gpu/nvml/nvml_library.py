"""Implements `GpuLibrary` with NVML."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from ctypes import addressof
from typing import Any

import pynvml

from trainhub_node.gpu import nvml_errors
from trainhub_node.gpu.gpu_events import NO_INSTANCE, LibraryEvent
from trainhub_node.gpu.gpu_inventory import GpuInventory
from trainhub_node.gpu.gpu_processes import ProcessOwner, no_owner
from trainhub_node.gpu.library import DirectQuery, FieldId, ListedGpu
from trainhub_node.gpu.nvml.calls import or_none, read_fields, translate_errors
from trainhub_node.gpu.nvml.device_list import gpu_with_mig_devices
from trainhub_node.gpu.nvml.queries import GPU_QUERIES, MIG_QUERIES
from trainhub_node.gpu.nvml.unload import unload

WAIT_MS, KB = 1000, 1000
EVENTS = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeDoubleBitEccError


class Gpus(GpuInventory):
    """The GPUs of this machine. `find_owner` returns the run that a process id belongs to. `chosen`: the
    indexes or UUIDs of those that this agent may use, None = all."""

    def __init__(
        self,
        find_owner: Callable[[int], ProcessOwner | None] = no_owner,
        chosen: frozenset[str] | None = None,
    ) -> None:
        super().__init__(NvmlLibrary(chosen), find_owner)


class NvmlLibrary:
    """Implements `GpuLibrary`, which documents the methods."""

    def __init__(self, chosen: frozenset[str] | None = None) -> None:
        self._chosen = chosen
        self._event_set: object = None
        self._uuids: dict[int, str] = {}

    @translate_errors
    def open(self) -> tuple[str, str]:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError_LibRmVersionMismatch:
            # An event set is left only where `close` was not called, because a thread hangs inside the
            # library.
            if self._event_set is None:
                unload(pynvml)
            raise
        self._event_set = or_none(pynvml.nvmlEventSetCreate)
        cuda = or_none(pynvml.nvmlSystemGetCudaDriverVersion_v2)
        return or_none(
            pynvml.nvmlSystemGetDriverVersion
        ) or "", f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else ""

    def close(self) -> None:
        if self._event_set:
            or_none(pynvml.nvmlEventSetFree, self._event_set)
        self._event_set, self._uuids = None, {}
        or_none(pynvml.nvmlShutdown)

    @translate_errors
    def count(self) -> int:
        return int(pynvml.nvmlDeviceGetCount())

    @translate_errors
    def list_gpus(self) -> list[ListedGpu]:
        """Lists the GPUs that answer. Raises the last GPU's error if none answers, or if the error concerns
        the whole library."""
        gpus, error_of_last = [], None
        for index in range(self.count()):
            try:
                gpus += [gpu for gpu in gpu_with_mig_devices(index) if self._may_use(gpu)]
            except pynvml.NVMLError as error:
                error_of_last = error
        # One failing GPU must not hide the others, except when the error concerns the library as a whole.
        if error_of_last and (
            not gpus or isinstance(nvml_errors.from_code(error_of_last.value, ""), nvml_errors.LibraryLost)
        ):
            raise error_of_last
        return gpus

    def _may_use(self, gpu: ListedGpu) -> bool:
        return self._chosen is None or bool(self._chosen & {str(gpu.index), gpu.uuid, gpu.parent})

    def register_events(self, gpu: ListedGpu) -> bool:
        self._uuids[gpu.handle_id] = gpu.uuid
        with suppress(pynvml.NVMLError):
            # Types that the device lacks are left out, because NVML refuses the whole registration for one of
            # them.
            if self._event_set and (types := pynvml.nvmlDeviceGetSupportedEventTypes(gpu.handle) & EVENTS):
                pynvml.nvmlDeviceRegisterEvents(gpu.handle, types, self._event_set)
                return True
        return False

    @translate_errors
    def wait_for_event(self) -> LibraryEvent:
        data = pynvml.nvmlEventSetWait_v2(self._event_set, WAIT_MS)
        uuid = self._uuids.get(addressof(data.device.contents)) if data.device else None
        gpu = uuid or or_none(pynvml.nvmlDeviceGetUUID, data.device) or ""
        if data.eventType & pynvml.nvmlEventTypeXidCriticalError:
            return LibraryEvent("xid", gpu, int(data.eventData), int(data.gpuInstanceId))
        return LibraryEvent("ecc", gpu, 0, NO_INSTANCE)

    def direct_queries(self, gpu: ListedGpu) -> Sequence[DirectQuery]:
        return MIG_QUERIES if gpu.parent else GPU_QUERIES

    def fields(
        self, handle: object, field_ids: Sequence[FieldId], *, wide: bool = False
    ) -> Mapping[FieldId, float]:
        return read_fields(handle, field_ids, wide=wide)

    @translate_errors
    def pcie_throughput(self, handle: object) -> Mapping[str, float]:
        """Calls NVML once for each direction, which blocks for 20 ms each. NVML reports KB of 1000 bytes. The
        constants of the two directions are easily confused."""
        return {
            "pcie_tx_bytes_s": pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_TX_BYTES)
            * KB,
            "pcie_rx_bytes_s": pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_RX_BYTES)
            * KB,
        }

    @translate_errors
    def has_gpm(self, gpu: ListedGpu) -> bool:
        handle = gpu.parent_handle if gpu.parent else gpu.handle
        return bool(pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice)

    @translate_errors
    def take_gpm_sample(self, gpu: ListedGpu) -> object:
        sample = pynvml.nvmlGpmSampleAlloc()
        try:
            if gpu.parent:
                return pynvml.nvmlGpmMigSampleGet(gpu.parent_handle, gpu.instance, sample)
            return pynvml.nvmlGpmSampleGet(gpu.handle, sample)
        except pynvml.NVMLError:
            self.free_gpm_sample(sample)
            raise

    @translate_errors
    def gpm_metrics(self, before: object, after: object, metrics: Sequence[int]) -> Mapping[int, float]:
        request = pynvml.c_nvmlGpmMetricsGet_t(
            version=pynvml.NVML_GPM_METRICS_GET_VERSION,
            numMetrics=len(metrics),
            sample1=before,
            sample2=after,
        )
        for index, metric in enumerate(metrics):
            request.metrics[index].metricId = metric
        pynvml.nvmlGpmMetricsGet(request)
        answers = [
            answer for answer in request.metrics[: len(metrics)] if answer.nvmlReturn == nvml_errors.SUCCESS
        ]
        return {answer.metricId: answer.value for answer in answers if math.isfinite(answer.value)}

    def free_gpm_sample(self, sample: object) -> None:
        or_none(pynvml.nvmlGpmSampleFree, sample)

    @translate_errors
    def processes(self, handle: object) -> Mapping[int, int | None]:
        """Merges NVML's lists of compute and of graphics processes. A process that is in both has the same
        memory in both."""
        memory: dict[int, int | None] = {}
        for process in (
            *_processes_of_kind("Compute", handle),
            *(or_none(_processes_of_kind, "Graphics", handle) or ()),
        ):
            memory[process.pid] = max(
                (size for size in (memory.get(process.pid), process.usedGpuMemory) if size is not None),
                default=None,
            )
        return memory

    @translate_errors
    def process_utilization(self, handle: object, since_us: int) -> Sequence[tuple[int, int, float]]:
        return [
            (sample.pid, sample.timeStamp, sample.smUtil)
            for sample in pynvml.nvmlDeviceGetProcessUtilization(handle, since_us)
        ]


def _processes_of_kind(kind: str, handle: Any) -> Sequence[Any]:
    """Returns NVML's "Compute" or "Graphics" processes. It calls functions by versioned names: for a plain
    name that is missing, pynvml raises no NVMLError."""
    try:
        return list(getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses_v3")(handle))
    except pynvml.NVMLError_FunctionNotFound:
        return list(getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses_v2")(handle))
