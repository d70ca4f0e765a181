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
from trainhub_node.gpu.gpu_events import NO_INSTANCE, Occurrence
from trainhub_node.gpu.gpu_inventory import Roster
from trainhub_node.gpu.gpu_processes import Owner, nobodys
from trainhub_node.gpu.library import Field, Found, Plain
from trainhub_node.gpu.readings import THROTTLES, known, throttled

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
MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Of a field's value, by its type."""


class Gpus(Roster):
    """The GPUs of this machine. `owner_of`: whose a process is."""

    def __init__(self, owner_of: Callable[[int], Owner | None] = nobodys) -> None:
        super().__init__(Nvml(), owner_of)


def answered(call: Callable[..., Any]) -> Callable[..., Any]:
    """NVML's errors as ours."""

    @wraps(call)
    def asked(*args: Any, **options: Any) -> Any:
        try:
            return call(*args, **options)
        except pynvml.NVMLError as error:
            raise nvml_errors.sorted_out(error.value, str(error)) from None

    return asked


class Nvml:
    """See `gpu_library.Library`."""

    def __init__(self) -> None:
        self._set: Any = None
        self._uuids: dict[int, str] = {}

    @answered
    def open(self) -> tuple[str, str]:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError_LibRmVersionMismatch:
            if self._set is None:
                _unload()
            raise
        self._set = _or_none(pynvml.nvmlEventSetCreate)
        cuda = _or_none(pynvml.nvmlSystemGetCudaDriverVersion_v2)
        return _or_none(
            pynvml.nvmlSystemGetDriverVersion
        ) or "", f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else ""

    def close(self) -> None:
        if self._set:
            _or_none(pynvml.nvmlEventSetFree, self._set)
        self._set, self._uuids = None, {}
        _or_none(pynvml.nvmlShutdown)

    @answered
    def count(self) -> int:
        return int(pynvml.nvmlDeviceGetCount())

    @answered
    def listed(self) -> list[Found]:
        """Raises what kept the last one away where none can be listed."""
        found, failed = [], None
        for index in range(self.count()):
            try:
                found += _listed(index)
            except pynvml.NVMLError as error:
                failed = error
        if failed and (
            not found or isinstance(nvml_errors.sorted_out(failed.value, ""), nvml_errors.LibraryGone)
        ):
            raise failed
        return found

    def hear(self, found: Found) -> bool:
        self._uuids[found.handle_id] = found.uuid
        with suppress(pynvml.NVMLError):
            if self._set and (types := pynvml.nvmlDeviceGetSupportedEventTypes(found.handle) & EVENTS):
                pynvml.nvmlDeviceRegisterEvents(found.handle, types, self._set)
                return True
        return False

    @answered
    def wait(self) -> Occurrence:
        data = pynvml.nvmlEventSetWait_v2(self._set, WAIT_MS)
        known_as = self._uuids.get(addressof(data.device.contents)) if data.device else None
        gpu = known_as or _or_none(pynvml.nvmlDeviceGetUUID, data.device) or ""
        if data.eventType & pynvml.nvmlEventTypeXidCriticalError:
            return Occurrence("xid", gpu, int(data.eventData), int(data.gpuInstanceId))
        return Occurrence("ecc", gpu, 0, NO_INSTANCE)

    def plain(self, found: Found) -> Sequence[Plain]:
        return PLAIN_OF_PARTS if found.parent else PLAIN

    @staticmethod
    @answered
    def fields(handle: Any, wanted: Sequence[Field], *, wide: bool = False) -> Mapping[Field, float]:
        """Each field answers for itself."""
        values = pynvml.nvmlDeviceGetFieldValues(handle, list(wanted))
        told = {
            (one.fieldId, one.scopeId): getattr(one.value, MEMBERS[one.valueType])
            for one in values
            if one.nvmlReturn == nvml_errors.SUCCESS and (one.valueType == WIDE or not wide)
        }
        if not told:
            code = values[0].nvmlReturn
            raise nvml_errors.sorted_out(NO_SUCH_FIELD.get(code, code), str(pynvml.NVMLError(code)))
        return told

    @answered
    def throughput(self, handle: Any) -> Mapping[str, float]:
        """Two constants that are easily mixed up, and both calls block for 20 ms. KB are 1000 bytes."""
        return {
            "pcie_tx_bytes_s": pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_TX_BYTES)
            * KB,
            "pcie_rx_bytes_s": pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_RX_BYTES)
            * KB,
        }

    @answered
    def has_gpm(self, found: Found) -> bool:
        handle = found.parent_handle if found.parent else found.handle
        return bool(pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice)

    @answered
    def sample(self, found: Found) -> Any:
        made = pynvml.nvmlGpmSampleAlloc()
        try:
            if found.parent:
                return pynvml.nvmlGpmMigSampleGet(found.parent_handle, found.instance, made)
            return pynvml.nvmlGpmSampleGet(found.handle, made)
        except pynvml.NVMLError:
            self.free(made)
            raise

    @answered
    def between(self, before: Any, after: Any, metrics: Sequence[int]) -> Mapping[int, float]:
        asked = pynvml.c_nvmlGpmMetricsGet_t(
            version=pynvml.NVML_GPM_METRICS_GET_VERSION,
            numMetrics=len(metrics),
            sample1=before,
            sample2=after,
        )
        for place, metric in enumerate(metrics):
            asked.metrics[place].metricId = metric
        pynvml.nvmlGpmMetricsGet(asked)
        told = [one for one in asked.metrics[: len(metrics)] if one.nvmlReturn == nvml_errors.SUCCESS]
        return {one.metricId: one.value for one in told if math.isfinite(one.value)}

    def free(self, sample: Any) -> None:
        _or_none(pynvml.nvmlGpmSampleFree, sample)

    @answered
    def processes(self, handle: Any) -> Mapping[int, int | None]:
        """Whoever both computes and draws stands in both lists, with the same memory."""
        told: dict[int, int | None] = {}
        for one in (*_running("Compute", handle), *(_or_none(_running, "Graphics", handle) or ())):
            told[one.pid] = max(
                (size for size in (told.get(one.pid), one.usedGpuMemory) if size is not None), default=None
            )
        return told

    @answered
    def usage(self, handle: Any, since_us: int) -> Sequence[tuple[int, int, float]]:
        return [
            (one.pid, one.timeStamp, one.smUtil)
            for one in pynvml.nvmlDeviceGetProcessUtilization(handle, since_us)
        ]


def _one(key: str, call: Callable[[Any], float]) -> Plain:
    return (key,), answered(lambda handle: {key: call(handle)})


def _field(handle: Any, field: int) -> float:
    return Nvml.fields(handle, [(field, 0)])[field, 0]


@answered
def _utilization(handle: Any) -> Mapping[str, float]:
    """How much of the time a kernel was resident, which says nothing of how busy it kept the GPU."""
    told = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"utilization_pct": told.gpu, "memory_bandwidth_pct": told.memory}


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


@answered
def _memory_use(handle: Any) -> Mapping[str, float]:
    told = _memory(handle)
    return known(memory_used_bytes=told.used, memory_reserved_bytes=getattr(told, "reserved", None))


@answered
def _throttle(handle: Any) -> Mapping[str, float]:
    try:
        return throttled(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError_FunctionNotFound:
        return throttled(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


PLAIN_OF_PARTS: tuple[Plain, ...] = ((("memory_used_bytes", "memory_reserved_bytes"), _memory_use),)
"""Of a MIG device."""
PLAIN: tuple[Plain, ...] = (
    *PLAIN_OF_PARTS,
    (("utilization_pct", "memory_bandwidth_pct"), _utilization),
    ((*THROTTLES, "throttle_reasons"), _throttle),
    _one("power_w", lambda h: pynvml.nvmlDeviceGetPowerUsage(h) / 1000),
    _one("power_limit_w", lambda h: pynvml.nvmlDeviceGetEnforcedPowerLimit(h) / 1000),
    _one("temperature_c", lambda h: pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU)),
    _one("sm_clock_mhz", lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_SM)),
    _one("memory_clock_mhz", lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_MEM)),
    # Boards without that sensor may say 0.
    (
        ("memory_temperature_c",),
        lambda h: known(memory_temperature_c=_field(h, pynvml.NVML_FI_DEV_MEMORY_TEMP) or None),
    ),
    _one("encoder_pct", lambda h: pynvml.nvmlDeviceGetEncoderUtilization(h)[0]),
    _one("decoder_pct", lambda h: pynvml.nvmlDeviceGetDecoderUtilization(h)[0]),
    _one("energy_mj", pynvml.nvmlDeviceGetTotalEnergyConsumption),
    _one("fan_pct", pynvml.nvmlDeviceGetFanSpeed),
    _one(
        "ecc_corrected", lambda h: pynvml.nvmlDeviceGetTotalEccErrors(h, CORRECTED, pynvml.NVML_AGGREGATE_ECC)
    ),
    _one(
        "ecc_uncorrected",
        lambda h: pynvml.nvmlDeviceGetTotalEccErrors(h, UNCORRECTED, pynvml.NVML_AGGREGATE_ECC),
    ),
    _one("retired_pages_sbe", lambda h: len(pynvml.nvmlDeviceGetRetiredPages(h, SBE))),
    _one("retired_pages_dbe", lambda h: len(pynvml.nvmlDeviceGetRetiredPages(h, DBE))),
    _one("retired_pages_pending", pynvml.nvmlDeviceGetRetiredPagesPendingStatus),
    (REMAPPED, answered(lambda h: dict(zip(REMAPPED, pynvml.nvmlDeviceGetRemappedRows(h), strict=True)))),
    _one("pcie_replays", pynvml.nvmlDeviceGetPcieReplayCounter),
    _one("pcie_generation", pynvml.nvmlDeviceGetCurrPcieLinkGeneration),
    _one("pcie_generation_max", pynvml.nvmlDeviceGetMaxPcieLinkGeneration),
    _one("pcie_width", pynvml.nvmlDeviceGetCurrPcieLinkWidth),
    _one("pcie_width_max", pynvml.nvmlDeviceGetMaxPcieLinkWidth),
    _one("nvlink_crc_errors", lambda h: _field(h, pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL)),
    _one("nvlink_replays", lambda h: _field(h, pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL)),
)


def _listed(index: int) -> list[Found]:
    """The GPU at this place, and its MIG devices."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    mig = bool((_or_none(pynvml.nvmlDeviceGetMigMode, handle) or (0,))[0])
    whole = replace(_found(handle, index), mig=mig)
    places = range(_or_none(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0) if mig else ()
    parts = (_or_none(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place) for place in places)
    return [
        whole,
        *(_part(part, whole, _or_none(pynvml.nvmlDeviceGetGpuInstanceId, part)) for part in parts if part),
    ]


def _part(handle: Any, whole: Found, instance: int | None) -> Found:
    return replace(
        _found(handle, whole.index), parent=whole.uuid, parent_handle=whole.handle, instance=instance or 0
    )


def _found(handle: Any, index: int) -> Found:
    memory, name = _or_none(_memory, handle), _or_none(pynvml.nvmlDeviceGetName, handle) or "GPU"
    return Found(
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        index=index,
        name=name,
        handle=handle,
        handle_id=addressof(handle.contents),
        memory_bytes=int(memory.total) if memory else None,
    )


def _running(kind: str, handle: Any) -> Sequence[Any]:
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
