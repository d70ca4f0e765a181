"""The only module that talks to NVML: each of its calls that we use, with the trap that it holds.

When something is asked, held, lost and found again is decided in `gpu_roster` and the modules below it.
"""

from __future__ import annotations

import _ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from ctypes import addressof
from dataclasses import replace
from functools import wraps
from typing import Any

import pynvml  # of the package nvidia-ml-py; without it the agent must not start, rather than show no GPUs

from trainhub_node.gpu import nvml_errors
from trainhub_node.gpu.gpu_events import NO_INSTANCE, LibraryEvent
from trainhub_node.gpu.gpu_inventory import GpuInventory
from trainhub_node.gpu.gpu_processes import ProcessOwner, no_owner
from trainhub_node.gpu.library import FieldId, ListedGpu, DirectQuery
from trainhub_node.gpu.readings import THROTTLES, present, throttle_numbers

WAIT_MS, KB = 1000, 1000
EVENTS = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeDoubleBitEccError
CORRECTED, UNCORRECTED = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
SBE = pynvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS
DBE = pynvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR
WIDE = pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
REMAPPED = tuple(f"remapped_rows_{name}" for name in ("corrected", "uncorrected", "pending", "failed"))
NO_SUCH_FIELD = dict.fromkeys(
    (nvml_errors.SUCCESS, nvml_errors.INVALID_ARGUMENT, nvml_errors.NOT_FOUND), nvml_errors.NOT_SUPPORTED
)
"""What a field that a device or driver does not know may answer; success is a counter that is too narrow."""
VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Of a field's value, by its type."""


class Gpus(GpuInventory):
    """The GPUs of this machine. `owner_of`: whose a process is."""

    def __init__(self, owner_of: Callable[[int], ProcessOwner | None] = no_owner) -> None:
        super().__init__(Nvml(), owner_of)


def translate_errors(call: Callable[..., Any]) -> Callable[..., Any]:
    """NVML's errors as ours."""

    @wraps(call)
    def wrapper(*args: Any, **options: Any) -> Any:
        try:
            return call(*args, **options)
        except pynvml.NVMLError as error:
            raise nvml_errors.from_code(error.value, str(error)) from None

    return wrapper


class Nvml:
    """See `gpu_library.Library`."""

    def __init__(self) -> None:
        self._event_set: Any = None
        self._uuids: dict[int, str] = {}

    @translate_errors
    def open(self) -> tuple[str, str]:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError_LibRmVersionMismatch:
            if self._event_set is None:
                _unload()
            raise
        self._event_set = _or_none(pynvml.nvmlEventSetCreate)
        cuda = _or_none(pynvml.nvmlSystemGetCudaDriverVersion_v2)
        return _or_none(
            pynvml.nvmlSystemGetDriverVersion
        ) or "", f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else ""

    def close(self) -> None:
        if self._event_set:
            _or_none(pynvml.nvmlEventSetFree, self._event_set)
        self._event_set, self._uuids = None, {}
        _or_none(pynvml.nvmlShutdown)

    @translate_errors
    def count(self) -> int:
        return int(pynvml.nvmlDeviceGetCount())

    @translate_errors
    def list_gpus(self) -> list[ListedGpu]:
        """Raises what kept the last one away where none can be listed."""
        gpus, error_of_last = [], None
        for index in range(self.count()):
            try:
                gpus += _gpu_with_mig_devices(index)
            except pynvml.NVMLError as error:
                error_of_last = error
        if error_of_last and (
            not gpus or isinstance(nvml_errors.from_code(error_of_last.value, ""), nvml_errors.LibraryLost)
        ):
            raise error_of_last
        return gpus

    def register_events(self, gpu: ListedGpu) -> bool:
        self._uuids[gpu.handle_id] = gpu.uuid
        with suppress(pynvml.NVMLError):
            if self._event_set and (types := pynvml.nvmlDeviceGetSupportedEventTypes(gpu.handle) & EVENTS):
                pynvml.nvmlDeviceRegisterEvents(gpu.handle, types, self._event_set)
                return True
        return False

    @translate_errors
    def wait_for_event(self) -> LibraryEvent:
        data = pynvml.nvmlEventSetWait_v2(self._event_set, WAIT_MS)
        uuid = self._uuids.get(addressof(data.device.contents)) if data.device else None
        gpu = uuid or _or_none(pynvml.nvmlDeviceGetUUID, data.device) or ""
        if data.eventType & pynvml.nvmlEventTypeXidCriticalError:
            return LibraryEvent("xid", gpu, int(data.eventData), int(data.gpuInstanceId))
        return LibraryEvent("ecc", gpu, 0, NO_INSTANCE)

    def direct_queries(self, gpu: ListedGpu) -> Sequence[DirectQuery]:
        return MIG_QUERIES if gpu.parent else GPU_QUERIES

    @staticmethod
    @translate_errors
    def fields(handle: Any, field_ids: Sequence[FieldId], *, wide: bool = False) -> Mapping[FieldId, float]:
        """Each field answers for itself."""
        values = pynvml.nvmlDeviceGetFieldValues(handle, list(field_ids))
        result = {
            (field.fieldId, field.scopeId): getattr(field.value, VALUE_MEMBERS[field.valueType])
            for field in values
            if field.nvmlReturn == nvml_errors.SUCCESS and (field.valueType == WIDE or not wide)
        }
        if not result:
            code = values[0].nvmlReturn
            raise nvml_errors.from_code(NO_SUCH_FIELD.get(code, code), str(pynvml.NVMLError(code)))
        return result

    @translate_errors
    def pcie_throughput(self, handle: Any) -> Mapping[str, float]:
        """Two constants that are easily mixed up, and both calls block for 20 ms. KB are 1000 bytes."""
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
    def take_gpm_sample(self, gpu: ListedGpu) -> Any:
        sample = pynvml.nvmlGpmSampleAlloc()
        try:
            if gpu.parent:
                return pynvml.nvmlGpmMigSampleGet(gpu.parent_handle, gpu.instance, sample)
            return pynvml.nvmlGpmSampleGet(gpu.handle, sample)
        except pynvml.NVMLError:
            self.free_gpm_sample(sample)
            raise

    @translate_errors
    def gpm_metrics(self, before: Any, after: Any, metrics: Sequence[int]) -> Mapping[int, float]:
        request = pynvml.c_nvmlGpmMetricsGet_t(
            version=pynvml.NVML_GPM_METRICS_GET_VERSION,
            numMetrics=len(metrics),
            sample1=before,
            sample2=after,
        )
        for index, metric in enumerate(metrics):
            request.metrics[index].metricId = metric
        pynvml.nvmlGpmMetricsGet(request)
        answers = [answer for answer in request.metrics[: len(metrics)] if answer.nvmlReturn == nvml_errors.SUCCESS]
        return {one.metricId: one.value for one in answers if math.isfinite(one.value)}

    def free_gpm_sample(self, sample: Any) -> None:
        _or_none(pynvml.nvmlGpmSampleFree, sample)

    @translate_errors
    def processes(self, handle: Any) -> Mapping[int, int | None]:
        """Whoever both computes and draws stands in both lists, with the same memory."""
        memory: dict[int, int | None] = {}
        for process in (*_processes_of_kind("Compute", handle), *(_or_none(_processes_of_kind, "Graphics", handle) or ())):
            memory[process.pid] = max(
                (size for size in (memory.get(process.pid), process.usedGpuMemory) if size is not None), default=None
            )
        return memory

    @translate_errors
    def process_utilization(self, handle: Any, since_us: int) -> Sequence[tuple[int, int, float]]:
        return [
            (sample.pid, sample.timeStamp, sample.smUtil)
            for sample in pynvml.nvmlDeviceGetProcessUtilization(handle, since_us)
        ]


def _single_query(key: str, call: Callable[[Any], float]) -> DirectQuery:
    return (key,), translate_errors(lambda handle: {key: call(handle)})


def _field(handle: Any, field: int) -> float:
    return Nvml.fields(handle, [(field, 0)])[field, 0]


@translate_errors
def _utilization(handle: Any) -> Mapping[str, float]:
    """How much of the time a kernel was resident, which says nothing of how busy it kept the GPU."""
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"utilization_pct": rates.gpu, "memory_bandwidth_pct": rates.memory}


def _memory(handle: Any) -> Any:
    """As nvidia-smi: what the driver keeps for itself is apart. The older call counts it as used."""
    try:
        return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except (
        pynvml.NVMLError_NotSupported,
        pynvml.NVMLError_FunctionNotFound,
        pynvml.NVMLError_ArgumentVersionMismatch,
    ):
        return pynvml.nvmlDeviceGetMemoryInfo(handle)


@translate_errors
def _memory_use(handle: Any) -> Mapping[str, float]:
    memory = _memory(handle)
    return present(memory_used_bytes=memory.used, memory_reserved_bytes=getattr(memory, "reserved", None))


@translate_errors
def _throttle(handle: Any) -> Mapping[str, float]:
    try:
        return throttle_numbers(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError_FunctionNotFound:
        return throttle_numbers(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


MIG_QUERIES: tuple[DirectQuery, ...] = ((("memory_used_bytes", "memory_reserved_bytes"), _memory_use),)
"""Of a MIG device."""
GPU_QUERIES: tuple[DirectQuery, ...] = (
    *MIG_QUERIES,
    (("utilization_pct", "memory_bandwidth_pct"), _utilization),
    ((*THROTTLES, "throttle_reasons"), _throttle),
    _single_query("power_w", lambda h: pynvml.nvmlDeviceGetPowerUsage(h) / 1000),
    _single_query("power_limit_w", lambda h: pynvml.nvmlDeviceGetEnforcedPowerLimit(h) / 1000),
    _single_query("temperature_c", lambda h: pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU)),
    _single_query("sm_clock_mhz", lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_SM)),
    _single_query("memory_clock_mhz", lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_MEM)),
    # Boards without that sensor may say 0.
    (
        ("memory_temperature_c",),
        lambda h: present(memory_temperature_c=_field(h, pynvml.NVML_FI_DEV_MEMORY_TEMP) or None),
    ),
    _single_query("encoder_pct", lambda h: pynvml.nvmlDeviceGetEncoderUtilization(h)[0]),
    _single_query("decoder_pct", lambda h: pynvml.nvmlDeviceGetDecoderUtilization(h)[0]),
    _single_query("energy_mj", pynvml.nvmlDeviceGetTotalEnergyConsumption),
    _single_query("fan_pct", pynvml.nvmlDeviceGetFanSpeed),
    _single_query(
        "ecc_corrected", lambda h: pynvml.nvmlDeviceGetTotalEccErrors(h, CORRECTED, pynvml.NVML_AGGREGATE_ECC)
    ),
    _single_query(
        "ecc_uncorrected",
        lambda h: pynvml.nvmlDeviceGetTotalEccErrors(h, UNCORRECTED, pynvml.NVML_AGGREGATE_ECC),
    ),
    _single_query("retired_pages_sbe", lambda h: len(pynvml.nvmlDeviceGetRetiredPages(h, SBE))),
    _single_query("retired_pages_dbe", lambda h: len(pynvml.nvmlDeviceGetRetiredPages(h, DBE))),
    _single_query("retired_pages_pending", pynvml.nvmlDeviceGetRetiredPagesPendingStatus),
    (REMAPPED, translate_errors(lambda h: dict(zip(REMAPPED, pynvml.nvmlDeviceGetRemappedRows(h), strict=True)))),
    _single_query("pcie_replays", pynvml.nvmlDeviceGetPcieReplayCounter),
    _single_query("pcie_generation", pynvml.nvmlDeviceGetCurrPcieLinkGeneration),
    _single_query("pcie_generation_max", pynvml.nvmlDeviceGetMaxPcieLinkGeneration),
    _single_query("pcie_width", pynvml.nvmlDeviceGetCurrPcieLinkWidth),
    _single_query("pcie_width_max", pynvml.nvmlDeviceGetMaxPcieLinkWidth),
    _single_query("nvlink_crc_errors", lambda h: _field(h, pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL)),
    _single_query("nvlink_replays", lambda h: _field(h, pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL)),
)


def _gpu_with_mig_devices(index: int) -> list[ListedGpu]:
    """The GPU at this place, and its MIG devices."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    mig = bool((_or_none(pynvml.nvmlDeviceGetMigMode, handle) or (0,))[0])
    gpu = replace(_listed_gpu(handle, index), mig=mig)
    slots = range(_or_none(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0) if mig else ()
    handles = (_or_none(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, slot) for slot in slots)
    return [
        gpu,
        *(_mig_device(mig_handle, gpu, _or_none(pynvml.nvmlDeviceGetGpuInstanceId, mig_handle)) for mig_handle in handles if mig_handle),
    ]


def _mig_device(handle: Any, gpu: ListedGpu, instance: int | None) -> ListedGpu:
    return replace(
        _listed_gpu(handle, gpu.index), parent=gpu.uuid, parent_handle=gpu.handle, instance=instance or 0
    )


def _listed_gpu(handle: Any, index: int) -> ListedGpu:
    memory, name = _or_none(_memory, handle), _or_none(pynvml.nvmlDeviceGetName, handle) or "GPU"
    return ListedGpu(
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        index=index,
        name=name,
        handle=handle,
        handle_id=addressof(handle.contents),
        memory_bytes=int(memory.total) if memory else None,
    )


def _processes_of_kind(kind: str, handle: Any) -> Sequence[Any]:
    """By versioned names: for a plain one that is missing, pynvml raises what is no NVMLError."""
    try:
        return list(getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses_v3")(handle))
    except pynvml.NVMLError_FunctionNotFound:
        return list(getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses_v2")(handle))


def _unload() -> None:
    """After an update of the driver the library of before stays loaded and goes on refusing; the next try
    loads the new one."""
    _ctypes.dlclose(pynvml.nvmlLib._handle)
    pynvml.nvmlLib = None
    pynvml._nvmlGetFunctionPointer_cache.clear()


def _or_none(call: Callable[..., Any], *args: Any) -> Any:
    """For what may be missing without harm."""
    try:
        return call(*args)
    except (pynvml.NVMLError, UnicodeDecodeError):
        return None
