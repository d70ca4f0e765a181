"""The table of metrics of GPUs and machines, by which nodes sample and the hub stores, draws and exports
values.

The position of a metric in its table may change: blocks on the wire and in storage name their columns."""

from __future__ import annotations

from dataclasses import dataclass

# The three intervals, in seconds, at which a node reads values.
FAST_S, MEDIUM_S, SLOW_S = 1, 5, 60


@dataclass(frozen=True)
class MetricField:
    """A number that is recorded over time. `every_s`: seconds between two readings by a node; in between the
    last value is repeated.

    `dcgm`: the name under which NVIDIA's DCGM exporter publishes it, "" if it does not; `dcgm_scale`: the
    factor from our unit to DCGM's."""

    key: str
    label: str
    unit: str
    every_s: int = FAST_S
    dcgm: str = ""
    dcgm_scale: float = 1.0


MIB = 1 / 2**20
_SHARE = 0.01

GPU_METRICS = (
    MetricField("utilization_pct", "Utilisation", "%", dcgm="DCGM_FI_DEV_GPU_UTIL"),
    MetricField("memory_bandwidth_pct", "Memory bandwidth", "%", dcgm="DCGM_FI_DEV_MEM_COPY_UTIL"),
    MetricField("memory_used_bytes", "Memory used", "B", dcgm="DCGM_FI_DEV_FB_USED", dcgm_scale=MIB),
    MetricField(
        "memory_reserved_bytes",
        "Memory reserved by the driver",
        "B",
        dcgm="DCGM_FI_DEV_FB_RESERVED",
        dcgm_scale=MIB,
    ),
    MetricField("power_w", "Power", "W", dcgm="DCGM_FI_DEV_POWER_USAGE"),
    MetricField("power_limit_w", "Power limit", "W", dcgm="DCGM_FI_DEV_ENFORCED_POWER_LIMIT"),
    MetricField("temperature_c", "Temperature", "°C", dcgm="DCGM_FI_DEV_GPU_TEMP"),
    MetricField("sm_clock_mhz", "SM clock", "MHz", dcgm="DCGM_FI_DEV_SM_CLOCK"),
    MetricField("memory_clock_mhz", "Memory clock", "MHz", dcgm="DCGM_FI_DEV_MEM_CLOCK"),
    MetricField("throttled_thermal_pct", "Slowed by heat", "%"),
    MetricField("throttled_power_pct", "Slowed by the power limit", "%"),
    MetricField("throttled_hardware_pct", "Slowed by the hardware", "%"),
    MetricField("memory_temperature_c", "Memory temperature", "°C", MEDIUM_S, dcgm="DCGM_FI_DEV_MEMORY_TEMP"),
    MetricField("encoder_pct", "Encoder", "%", MEDIUM_S, dcgm="DCGM_FI_DEV_ENC_UTIL"),
    MetricField("decoder_pct", "Decoder", "%", MEDIUM_S, dcgm="DCGM_FI_DEV_DEC_UTIL"),
    MetricField("pcie_tx_bytes_s", "PCIe sent", "B/s", MEDIUM_S, dcgm="DCGM_FI_PROF_PCIE_TX_BYTES"),
    MetricField("pcie_rx_bytes_s", "PCIe received", "B/s", MEDIUM_S, dcgm="DCGM_FI_PROF_PCIE_RX_BYTES"),
    MetricField("nvlink_tx_bytes_s", "NVLink sent", "B/s", MEDIUM_S, dcgm="DCGM_FI_PROF_NVLINK_TX_BYTES"),
    MetricField("nvlink_rx_bytes_s", "NVLink received", "B/s", MEDIUM_S, dcgm="DCGM_FI_PROF_NVLINK_RX_BYTES"),
    MetricField(
        "engine_active_pct",
        "Engine active",
        "%",
        MEDIUM_S,
        dcgm="DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        dcgm_scale=_SHARE,
    ),
    MetricField(
        "sm_active_pct", "SM active", "%", MEDIUM_S, dcgm="DCGM_FI_PROF_SM_ACTIVE", dcgm_scale=_SHARE
    ),
    MetricField(
        "sm_occupancy_pct", "SM occupancy", "%", MEDIUM_S, dcgm="DCGM_FI_PROF_SM_OCCUPANCY", dcgm_scale=_SHARE
    ),
    MetricField(
        "tensor_active_pct",
        "Tensor cores active",
        "%",
        MEDIUM_S,
        dcgm="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        dcgm_scale=_SHARE,
    ),
    MetricField(
        "dram_active_pct", "Memory active", "%", MEDIUM_S, dcgm="DCGM_FI_PROF_DRAM_ACTIVE", dcgm_scale=_SHARE
    ),
    MetricField(
        "fp64_active_pct",
        "FP64 active",
        "%",
        MEDIUM_S,
        dcgm="DCGM_FI_PROF_PIPE_FP64_ACTIVE",
        dcgm_scale=_SHARE,
    ),
    MetricField(
        "fp32_active_pct",
        "FP32 active",
        "%",
        MEDIUM_S,
        dcgm="DCGM_FI_PROF_PIPE_FP32_ACTIVE",
        dcgm_scale=_SHARE,
    ),
    MetricField(
        "fp16_active_pct",
        "FP16 active",
        "%",
        MEDIUM_S,
        dcgm="DCGM_FI_PROF_PIPE_FP16_ACTIVE",
        dcgm_scale=_SHARE,
    ),
    MetricField("fan_pct", "Fan", "%", SLOW_S),
)

HOST_METRICS = (
    MetricField("cpu_pct", "CPU", "%"),
    MetricField("memory_used_bytes", "Memory used", "B"),
    MetricField("swap_used_bytes", "Swap used", "B", MEDIUM_S),
    MetricField("load_1", "Load", ""),
    MetricField("disk_free_bytes", "Disk free", "B", MEDIUM_S),
    MetricField("disk_read_bytes_s", "Disk read", "B/s"),
    MetricField("disk_write_bytes_s", "Disk written", "B/s"),
    MetricField("network_tx_bytes_s", "Network sent", "B/s"),
    MetricField("network_rx_bytes_s", "Network received", "B/s"),
    MetricField("infiniband_tx_bytes_s", "InfiniBand sent", "B/s", MEDIUM_S),
    MetricField("infiniband_rx_bytes_s", "InfiniBand received", "B/s", MEDIUM_S),
)

# Whole numbers that must stay exact: key -> (label, DCGM's name or ""). Only the current value is reported,
# without a history.
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
    "pcie_generation": ("Current PCIe generation", ""),
    "pcie_generation_max": ("Maximum PCIe generation", ""),
    "pcie_width": ("Current PCIe lanes", ""),
    "pcie_width_max": ("Maximum PCIe lanes", ""),
    "nvlink_crc_errors": ("NVLink CRC errors", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"),
    "nvlink_replays": ("NVLink replays", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
    "throttle_reasons": ("Reasons for lowered clocks (bit mask)", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"),
    "xid_last": ("The last XID error", "DCGM_FI_DEV_XID_ERRORS"),
    "xid_count": ("XID errors since the agent started", ""),
}

GPU_KEYS = {metric.key: metric for metric in GPU_METRICS}
HOST_KEYS = {metric.key: metric for metric in HOST_METRICS}
