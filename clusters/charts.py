"""Which charts pages draw, and in which order: what static/js/charts/ is told. A chart is a row here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from clusters.models import Gpu
from trainhub_launch.metrics import GPU_KEYS, HOST_KEYS

GPU, HOST = "gpu", "host"


@dataclass(frozen=True)
class Panel:
    """One chart of one or a few metrics of the same unit. `limit`: a metric, or a fact of the GPU, drawn as a
    dotted line.

    `quiet`: shown only where something of it is not 0.
    """

    metrics: tuple[str, ...]
    label: str = ""
    limit: str = ""
    quiet: bool = False


@dataclass(frozen=True)
class Group:
    key: str
    label: str
    scope: str
    panels: tuple[Panel, ...]
    open: bool = True


GROUPS = (
    Group(
        "gpus",
        "GPUs",
        GPU,
        (
            Panel(("utilization_pct",)),
            Panel(("memory_used_bytes",), limit="memory_bytes"),
            Panel(("power_w",), limit="power_limit_w"),
            Panel(("temperature_c",)),
            Panel(("sm_clock_mhz",)),
            Panel(("throttled_thermal_pct",), quiet=True),
            Panel(("throttled_power_pct",), quiet=True),
            Panel(("throttled_hardware_pct",), quiet=True),
        ),
    ),
    Group(
        "work",
        "What the GPUs do",
        GPU,
        (
            Panel(("sm_active_pct",)),
            Panel(("tensor_active_pct",)),
            Panel(("dram_active_pct",)),
            Panel(("sm_occupancy_pct",)),
            Panel(("memory_bandwidth_pct",)),
            Panel(("fp16_active_pct",), quiet=True),
            Panel(("fp32_active_pct",), quiet=True),
            Panel(("fp64_active_pct",), quiet=True),
            Panel(("encoder_pct",), quiet=True),
            Panel(("decoder_pct",), quiet=True),
        ),
    ),
    Group(
        "links",
        "Links and clocks",
        GPU,
        (
            Panel(("pcie_rx_bytes_s",)),
            Panel(("pcie_tx_bytes_s",)),
            Panel(("nvlink_rx_bytes_s",)),
            Panel(("nvlink_tx_bytes_s",)),
            Panel(("memory_clock_mhz",)),
            Panel(("memory_temperature_c",)),
            Panel(("fan_pct",), quiet=True),
        ),
    ),
    Group(
        "host",
        "Machine",
        HOST,
        (
            Panel(("cpu_pct",)),
            Panel(("memory_used_bytes",), "Memory", limit="memory_bytes"),
            Panel(("load_1",)),
            Panel(("disk_read_bytes_s", "disk_write_bytes_s"), "Disk"),
            Panel(("network_rx_bytes_s", "network_tx_bytes_s"), "Network"),
            Panel(("infiniband_rx_bytes_s", "infiniband_tx_bytes_s"), "InfiniBand"),
            Panel(("disk_free_bytes",)),
            Panel(("swap_used_bytes",), quiet=True),
        ),
    ),
)


def config(
    gpus: Iterable[Gpu] = (),
    *,
    nodes: Mapping[str, int] | None = None,
    scopes: tuple[str, ...] = (GPU, HOST),
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The JSON of `<section data-mount="charts">`, described in static/js/charts/grid.js.

    `gpus` in the order of the legend; `nodes`: name -> bytes of memory; `labels`: UUID -> what a page calls a
    GPU instead."""
    listed = list(gpus)
    subjects: dict[str, dict[str, Any]] = {
        gpu.uuid: {
            "label": (labels or {}).get(gpu.uuid) or _name(gpu, listed),
            "title": " ".join(filter(None, (gpu.name, gpu.profile))),
            "memory_bytes": gpu.memory_bytes,
            "is_part": bool(gpu.parent),
        }
        for gpu in listed
    }
    subjects.update({name: {"label": name, "memory_bytes": memory} for name, memory in (nodes or {}).items()})
    return {"groups": [_group(group) for group in GROUPS if group.scope in scopes], "subjects": subjects}


def _name(gpu: Gpu, gpus: list[Gpu]) -> str:
    """GPU 6, and its MIG devices GPU 6.0, 6.1 …"""
    siblings = [other.uuid for other in gpus if gpu.parent and other.parent == gpu.parent]
    return f"GPU {gpu.index}" + (f".{siblings.index(gpu.uuid)}" if siblings else "")


def _group(group: Group) -> dict[str, Any]:
    panels = [_panel(panel, group.scope) for panel in group.panels]
    return {"key": group.key, "label": group.label, "open": group.open, "panels": panels}


def _panel(panel: Panel, scope: str) -> dict[str, Any]:
    known = [(GPU_KEYS if scope == GPU else HOST_KEYS)[key] for key in panel.metrics]
    words = [
        metric.label.removeprefix(panel.label).strip() if panel.label else metric.label for metric in known
    ]
    return {
        "label": panel.label or known[0].label,
        "unit": known[0].unit,
        "scope": scope,
        "limit": panel.limit,
        "quiet": panel.quiet,
        "metrics": [{"key": metric.key, "label": word} for metric, word in zip(known, words, strict=True)],
    }
