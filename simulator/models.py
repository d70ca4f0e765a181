"""Models of real GPUs with a full set of values for each, idle or at work."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, TypeVar, Unpack

from simulator.curves import Curve, Noise, WhileHeld
from simulator.scenario import Event, Process, SimGpu, SimMig

GIB = 2**30
MIB = 2**20

# From Ampere on, GPUs remap bad rows of memory and no longer retire pages, so the counters of retired pages
# are absent.
COUNTERS: dict[str, Curve | float] = {
    "energy_mj": 0,
    "ecc_corrected": 0,
    "ecc_uncorrected": 0,
    "ecc_corrected_volatile": 0,
    "ecc_uncorrected_volatile": 0,
    "remapped_rows_corrected": 0,
    "remapped_rows_uncorrected": 0,
    "remapped_rows_pending": 0,
    "remapped_rows_failed": 0,
    "pcie_replays": 0,
    "nvlink_crc_errors": 0,
    "nvlink_replays": 0,
    "nvlink_recoveries": 0,
}


Device = TypeVar("Device", SimGpu, SimMig)


class GpuChanges(TypedDict, total=False):
    """Fields of SimGpu that differ from those of the model. `values` are merged into the model's."""

    values: Mapping[str, Curve | float]
    unsupported: set[str]
    errors: dict[str, int]
    delays_ms: dict[str, int]
    events: list[Event]
    processes: Sequence[Process] | Literal["visible"]
    removed: bool


class MigChanges(TypedDict, total=False):
    """Fields of SimMig that differ from the defaults of `mig_device`. `values` are merged in."""

    values: Mapping[str, Curve | float]
    multiprocessors: int
    processes: Sequence[Process] | Literal["visible"]


def uuid_of(name: str, kind: str = "GPU") -> str:
    """Returns a UUID in NVML's form. A name such as "gpu-0 of node a" always has the same one."""
    return f"{kind}-{uuid.uuid5(uuid.NAMESPACE_URL, f'trainhub-simulator:{name}')}"


def h100(name: str, **changes: Unpack[GpuChanges]) -> SimGpu:
    """Returns an idle NVIDIA H100 SXM with every value that it supports."""
    values: dict[str, Curve | float] = {
        **COUNTERS,
        **_common(total=81559 * MIB, reserved=565 * MIB, power_limit_w=700),
        "power_w": 70,
        "temperature_c": 32,
        "memory_temperature_c": 40,
        "sm_clock_mhz": 1980,
        "graphics_clock_mhz": 1980,
        "memory_clock_mhz": 2619,
        "video_clock_mhz": 1545,
        "pcie_generation": 5,
        "pcie_generation_max": 5,
        "nvlink_links": 18,
        "engine_active_pct": 0,
        "sm_active_pct": 0,
        "sm_occupancy_pct": 0,
        "tensor_active_pct": 0,
        "hmma_active_pct": 0,
        "dram_active_pct": 0,
        "fp64_active_pct": 0,
        "fp32_active_pct": 0,
        "fp16_active_pct": 0,
    }
    return _with_changes(SimGpu(uuid_of(name), "NVIDIA H100 80GB HBM3", values), changes)


def a100(name: str, **changes: Unpack[GpuChanges]) -> SimGpu:
    """Returns an idle NVIDIA A100 SXM 40 GB."""
    # It has no GPM (GPU performance monitoring), which NVML offers from Hopper on.
    values: dict[str, Curve | float] = {
        **COUNTERS,
        **_common(total=40960 * MIB, reserved=617 * MIB, power_limit_w=400),
        "power_w": 52,
        "temperature_c": 30,
        "memory_temperature_c": 34,
        "sm_clock_mhz": 1410,
        "graphics_clock_mhz": 1410,
        "memory_clock_mhz": 1215,
        "video_clock_mhz": 1275,
        "pcie_generation": 4,
        "pcie_generation_max": 4,
        "nvlink_links": 12,
    }
    gpu = SimGpu(uuid_of(name), "NVIDIA A100-SXM4-40GB", values, compute=(8, 0), architecture=7, gpm=False)
    return _with_changes(gpu, changes)


def mig_device(
    name: str,
    index: int,
    model: str = "NVIDIA H100 80GB HBM3",
    profile: str = "1g.10gb",
    **changes: Unpack[MigChanges],
) -> SimMig:
    """Returns part `index` of a GPU in MIG mode: one slice, with an eighth of an H100's memory."""
    part = SimMig(
        uuid_of(name, "MIG"),
        f"{model} MIG {profile}",
        gpu_instance=7 + index,
        values={"memory_total_bytes": 9856 * MIB, "memory_used_bytes": 12 * MIB, "memory_reserved_bytes": 0},
    )
    return _with_changes(part, changes)


def in_mig_mode(gpu: SimGpu, parts: int, processes: Sequence[Process] | Literal["visible"] = ()) -> SimGpu:
    """Splits the GPU into `parts` MIG devices of one slice each, and returns it."""
    gpu.values["mig_mode"] = 1
    gpu.mig = [
        mig_device(f"{gpu.uuid} part {index}", index, gpu.name, processes=processes) for index in range(parts)
    ]
    return gpu


def works_while_held(gpu: SimGpu, utilization_pct: float = 92, memory_share: float = 0.7) -> SimGpu:
    """Makes the GPU work, with some noise, while a process holds it, and returns it. Without a process it
    keeps its present values."""
    limit, share = _number(gpu, "power_limit_w"), utilization_pct / 100
    total = _number(gpu, "memory_total_bytes")
    held: dict[str, Curve | float] = {
        "utilization_pct": Noise(6, utilization_pct),
        "memory_bandwidth_pct": Noise(5, 55 * share),
        "memory_used_bytes": Noise(0.01 * total, memory_share * total),
        "power_w": Noise(limit * 0.04, limit * 0.85 * share),
        "temperature_c": Noise(1.5, 30 + 36 * share),
        "memory_temperature_c": Noise(1.5, 40 + 36 * share),
        "pcie_tx_bytes_s": Noise(3e8, 1.2e9 * share),
        "pcie_rx_bytes_s": Noise(3e8, 2.4e9 * share),
        "nvlink_tx_bytes_s": Noise(8e9, 9e10 * share),
        "nvlink_rx_bytes_s": Noise(8e9, 8.8e10 * share),
        "sm_clock_mhz": Noise(40, _number(gpu, "sm_clock_mhz") * 0.93),
        "throttle_reasons": 0,
    }
    if gpu.gpm:
        held |= {
            "engine_active_pct": Noise(4, 94 * share),
            "sm_active_pct": Noise(4, 81 * share),
            "sm_occupancy_pct": Noise(3, 42 * share),
            "tensor_active_pct": Noise(4, 47 * share),
            "hmma_active_pct": Noise(4, 46 * share),
            "dram_active_pct": Noise(4, 52 * share),
            "fp32_active_pct": Noise(1, 8 * share),
            "fp16_active_pct": Noise(1, 4 * share),
        }
    gpu.values |= {key: WhileHeld(value, gpu.values[key]) for key, value in held.items()}
    return gpu


def _common(total: int, reserved: int, power_limit_w: int) -> dict[str, Curve | float]:
    return {
        "memory_total_bytes": total,
        "memory_used_bytes": 4 * MIB,
        "memory_reserved_bytes": reserved,
        "utilization_pct": 0,
        "memory_bandwidth_pct": 0,
        "power_limit_w": power_limit_w,
        "power_management_limit_w": power_limit_w,
        "throttle_reasons": 1,
        "encoder_pct": 0,
        "decoder_pct": 0,
        "sampling_period_us": 167000,
        "performance_state": 0,
        "pcie_tx_bytes_s": 0,
        "pcie_rx_bytes_s": 0,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "nvlink_tx_bytes_s": 0,
        "nvlink_rx_bytes_s": 0,
        "mig_mode": 0,
        "mig_devices_max": 7,
    }


def _with_changes(device: Device, changes: GpuChanges | MigChanges) -> Device:
    device.values |= changes.get("values", {})
    for name, value in changes.items():
        # mypy checks the names, but scripts that use the simulator need not run it.
        if not hasattr(device, name):
            raise TypeError(f"{type(device).__name__} has no {name}")
        if name != "values":
            setattr(device, name, value)
    return device


def _number(gpu: SimGpu, key: str) -> float:
    value = gpu.values[key]
    if not isinstance(value, int | float):
        raise TypeError(f"{key} of {gpu.uuid} is no plain number")
    return value
