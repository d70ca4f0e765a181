"""What is measured of a GPU and of its machine: one table that the node samples by and the hub stores, draws
and exports by.

A metric's place in its table is no contract: blocks on the wire and in storage name their columns.
"""

from __future__ import annotations

from dataclasses import dataclass

FAST_S, MEDIUM_S, SLOW_S = 1, 5, 60
"""The three rhythms at which a node reads."""


@dataclass(frozen=True)
class Metric:
    """A number over time. `every_s`: how often a node reads it; in between the last reading stands.

    `dcgm`: the name under which NVIDIA's DCGM exporter publishes it, and `dcgm_scale` what our value is
    multiplied by for it."""

    key: str
    label: str
    unit: str
    every_s: int = FAST_S
    dcgm: str = ""
    dcgm_scale: float = 1.0


MIB = 1 / 2**20
_SHARE = 0.01

GPU_METRICS = (
    Metric("utilization_pct", "Utilisation", "%", dcgm="DCGM_FI_DEV_GPU_UTIL"),
    Metric("memory_bandwidth_pct", "Memory bandwidth", "%", dcgm="DCGM_FI_DEV_MEM_COPY_UTIL"),
    Metric("memory_used_bytes", "Memory used", "B", dcgm="DCGM_FI_DEV_FB_USED", dcgm_scale=MIB),
    Metric(
        "memory_reserved_bytes",
        "Memory reserved by the driver",
        "B",
        dcgm="DCGM_FI_DEV_FB_RESERVED",
        dcgm_scale=MIB,
    ),
    Metric("power_w", "Power", "W", dcgm="DCGM_FI_DEV_POWER_USAGE"),
    Metric("power_limit_w", "Power limit", "W", dcgm="DCGM_FI_DEV_ENFORCED_POWER_LIMIT"),
    Metric("temperature_c", "Temperature", "°C", dcgm="DCGM_FI_DEV_GPU_TEMP"),
    Metric("sm_clock_mhz", "SM clock", "MHz", dcgm="DCGM_FI_DEV_SM_CLOCK"),
    Metric("memory_clock_mhz", "Memory clock", "MHz", dcgm="DCGM_FI_DEV_MEM_CLOCK"),
    Metric("throttled_thermal_pct", "Slowed by heat", "%"),
    Metric("throttled_power_pct", "Slowed by the power limit", "%"),
    Metric("throttled_hardware_pct", "Slowed by the hardware", "%"),
    Metric("memory_temperature_c", "Memory temperature", "°C", MEDIUM_S, dcgm="DCGM_FI_DEV_MEMORY_TEMP"),
    Metric("encoder_pct", "Encoder", "%", MEDIUM_S, dcgm="DCGM_FI_DEV_ENC_UTIL"),
    Metric("decoder_pct", "Decoder", "%", MEDIUM_S, dcgm="DCGM_FI_DEV_DEC_UTIL"),
    Metric("pcie_tx_bytes_s", "PCIe sent", "B/s", MEDIUM_S, dcgm="DCGM_FI_PROF_PCIE_TX_BYTES"),
    Metric("pcie_rx_bytes_s", "PCIe received", "B/s", MEDIUM_S, dcgm="DCGM_FI_PROF_PCIE_RX_BYTES"),
    Metric("nvlink_tx_bytes_s", "NVLink sent", "B/s", MEDIUM_S, dcgm="DCGM_FI_PROF_NVLINK_TX_BYTES"),
    Metric("nvlink_rx_bytes_s", "NVLink received", "B/s", MEDIUM_S, dcgm="DCGM_FI_PROF_NVLINK_RX_BYTES"),
    Metric(
        "engine_active_pct",
        "Engine active",
        "%",
        MEDIUM_S,
        dcgm="DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        dcgm_scale=_SHARE,
    ),
    Metric("sm_active_pct", "SM active", "%", MEDIUM_S, dcgm="DCGM_FI_PROF_SM_ACTIVE", dcgm_scale=_SHARE),
    Metric(
        "sm_occupancy_pct", "SM occupancy", "%", MEDIUM_S, dcgm="DCGM_FI_PROF_SM_OCCUPANCY", dcgm_scale=_SHARE
    ),
    Metric(
        "tensor_active_pct",
        "Tensor cores active",
        "%",
        MEDIUM_S,
        dcgm="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        dcgm_scale=_SHARE,
    ),
    Metric(
        "dram_active_pct", "Memory active", "%", MEDIUM_S, dcgm="DCGM_FI_PROF_DRAM_ACTIVE", dcgm_scale=_SHARE
    ),
    Metric(
        "fp64_active_pct",
        "FP64 active",
        "%",
        MEDIUM_S,
        dcgm="DCGM_FI_PROF_PIPE_FP64_ACTIVE",
        dcgm_scale=_SHARE,
    ),
    Metric(
        "fp32_active_pct",
        "FP32 active",
        "%",
        MEDIUM_S,
        dcgm="DCGM_FI_PROF_PIPE_FP32_ACTIVE",
        dcgm_scale=_SHARE,
    ),
    Metric(
        "fp16_active_pct",
        "FP16 active",
        "%",
        MEDIUM_S,
        dcgm="DCGM_FI_PROF_PIPE_FP16_ACTIVE",
        dcgm_scale=_SHARE,
    ),
    Metric("fan_pct", "Fan", "%", SLOW_S),
)

HOST_METRICS = (
    Metric("cpu_pct", "CPU", "%"),
    Metric("memory_used_bytes", "Memory used", "B"),
    Metric("swap_used_bytes", "Swap used", "B", MEDIUM_S),
    Metric("load_1", "Load", ""),
    Metric("disk_free_bytes", "Disk free", "B", MEDIUM_S),
    Metric("disk_read_bytes_s", "Disk read", "B/s"),
    Metric("disk_write_bytes_s", "Disk written", "B/s"),
    Metric("network_tx_bytes_s", "Network sent", "B/s"),
    Metric("network_rx_bytes_s", "Network received", "B/s"),
    Metric("infiniband_tx_bytes_s", "InfiniBand sent", "B/s", MEDIUM_S),
    Metric("infiniband_rx_bytes_s", "InfiniBand received", "B/s", MEDIUM_S),
)

COUNTERS: dict[str, tuple[str, str]] = {
    "energy_mj": ("Energy since the driver was loaded, mJ", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"),
    "ecc_corrected": ("ECC errors corrected", "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL"),
    "ecc_uncorrected": ("ECC errors not corrected", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"),
    "retired_pages_sbe": ("Pages retired after corrected errors", "DCGM_FI_DEV_RETIRED_SBE"),
    "retired_pages_dbe": ("Pages retired after uncorrected errors", "DCGM_FI_DEV_RETIRED_DBE"),
    "retired_pages_pending": ("Pages to be retired at the next reset", "DCGM_FI_DEV_RETIRED_PENDING"),
    "remapped_rows_corrected": (
        "Rows remapped after corrected errors",
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    ),
    "remapped_rows_uncorrected": (
        "Rows remapped after uncorrected errors",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    ),
    "remapped_rows_pending": ("Rows to be remapped at the next reset", ""),
    "remapped_rows_failed": ("Remapping of a row has failed", "DCGM_FI_DEV_ROW_REMAP_FAILURE"),
    "pcie_replays": ("PCIe replays", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"),
    "pcie_generation": ("PCIe generation now", ""),
    "pcie_generation_max": ("PCIe generation at most", ""),
    "pcie_width": ("PCIe lanes now", ""),
    "pcie_width_max": ("PCIe lanes at most", ""),
    "nvlink_crc_errors": ("NVLink CRC errors", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"),
    "nvlink_replays": ("NVLink replays", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
    "throttle_reasons": ("Why its clocks are lowered now, a bit mask", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"),
    "xid_last": ("The last XID error", "DCGM_FI_DEV_XID_ERRORS"),
    "xid_count": ("XID errors since the agent started", ""),
}
"""Whole numbers that must stay exact: key -> (label, DCGM's name or nothing). Told as they stand now, not
over time."""

GPU_KEYS = {metric.key: metric for metric in GPU_METRICS}
HOST_KEYS = {metric.key: metric for metric in HOST_METRICS}
