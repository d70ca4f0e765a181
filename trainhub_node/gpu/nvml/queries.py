"""Queries of one call each: a row for every metric of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pynvml

from trainhub_node.gpu.library import DirectQuery
from trainhub_node.gpu.nvml.calls import memory_info, read_fields, translate_errors
from trainhub_node.gpu.readings import THROTTLES, present, throttle_numbers

CORRECTED, UNCORRECTED = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
SBE = pynvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS
DBE = pynvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR
REMAPPED = tuple(f"remapped_rows_{name}" for name in ("corrected", "uncorrected", "pending", "failed"))


def _single_query(key: str, call: Callable[[object], float]) -> DirectQuery:
    return (key,), translate_errors(lambda handle: {key: call(handle)})


def _field(handle: object, field: int) -> float:
    return float(read_fields(handle, [(field, 0)])[field, 0])


@translate_errors
def _utilization(handle: object) -> Mapping[str, float]:
    """Returns the share of time in which a kernel was resident. It does not show how much of the GPU the
    kernel used."""
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"utilization_pct": rates.gpu, "memory_bandwidth_pct": rates.memory}


@translate_errors
def _memory_use(handle: object) -> Mapping[str, float]:
    memory = memory_info(handle)
    return present(memory_used_bytes=memory.used, memory_reserved_bytes=getattr(memory, "reserved", None))


@translate_errors
def _throttle(handle: object) -> Mapping[str, float]:
    try:
        return throttle_numbers(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError_FunctionNotFound:
        return throttle_numbers(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


# The queries of a MIG device.
MIG_QUERIES: tuple[DirectQuery, ...] = ((("memory_used_bytes", "memory_reserved_bytes"), _memory_use),)
GPU_QUERIES: tuple[DirectQuery, ...] = (
    *MIG_QUERIES,
    (("utilization_pct", "memory_bandwidth_pct"), _utilization),
    ((*THROTTLES, "throttle_reasons"), _throttle),
    _single_query("power_w", lambda h: pynvml.nvmlDeviceGetPowerUsage(h) / 1000),
    _single_query("power_limit_w", lambda h: pynvml.nvmlDeviceGetEnforcedPowerLimit(h) / 1000),
    _single_query("temperature_c", lambda h: pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU)),
    _single_query("sm_clock_mhz", lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_SM)),
    _single_query("memory_clock_mhz", lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_MEM)),
    # Boards without that sensor may return 0.
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
    (
        REMAPPED,
        translate_errors(lambda h: dict(zip(REMAPPED, pynvml.nvmlDeviceGetRemappedRows(h), strict=True))),
    ),
    _single_query("pcie_replays", pynvml.nvmlDeviceGetPcieReplayCounter),
    _single_query("pcie_generation", pynvml.nvmlDeviceGetCurrPcieLinkGeneration),
    _single_query("pcie_generation_max", pynvml.nvmlDeviceGetMaxPcieLinkGeneration),
    _single_query("pcie_width", pynvml.nvmlDeviceGetCurrPcieLinkWidth),
    _single_query("pcie_width_max", pynvml.nvmlDeviceGetMaxPcieLinkWidth),
    _single_query(
        "nvlink_crc_errors", lambda h: _field(h, pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL)
    ),
    _single_query("nvlink_replays", lambda h: _field(h, pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL)),
)
