"""The table of charts that pages draw, in their order, as configuration for static/js/charts/."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusters.models import Gpu
from trainhub_launch.metrics import GPU_KEYS, HOST_KEYS

GPU, HOST = "gpu", "host"


@dataclass(frozen=True)
class ChartPanel:
    """A chart of one or a few metrics with the same unit. `limit`: a metric or an attribute of the GPU, drawn
    as a dotted line. `quiet`: the chart is hidden while all its values are 0."""

    metrics: tuple[str, ...]
    label: str = ""
    limit: str = ""
    quiet: bool = False


@dataclass(frozen=True)
class ChartGroup:
    key: str
    label: str
    scope: str
    panels: tuple[ChartPanel, ...]
    open: bool = True


GROUPS = (
    ChartGroup(
        "gpus",
        "GPUs",
        GPU,
        (
            ChartPanel(("utilization_pct",)),
            ChartPanel(("memory_used_bytes",), limit="memory_bytes"),
            ChartPanel(("power_w",), limit="power_limit_w"),
            ChartPanel(("temperature_c",)),
            ChartPanel(("sm_clock_mhz",)),
            ChartPanel(("throttled_thermal_pct",), quiet=True),
            ChartPanel(("throttled_power_pct",), quiet=True),
            ChartPanel(("throttled_hardware_pct",), quiet=True),
        ),
    ),
    ChartGroup(
        "work",
        "GPU activity",
        GPU,
        (
            ChartPanel(("sm_active_pct",)),
            ChartPanel(("tensor_active_pct",)),
            ChartPanel(("dram_active_pct",)),
            ChartPanel(("sm_occupancy_pct",)),
            ChartPanel(("memory_bandwidth_pct",)),
            ChartPanel(("fp16_active_pct",), quiet=True),
            ChartPanel(("fp32_active_pct",), quiet=True),
            ChartPanel(("fp64_active_pct",), quiet=True),
            ChartPanel(("encoder_pct",), quiet=True),
            ChartPanel(("decoder_pct",), quiet=True),
        ),
    ),
    ChartGroup(
        "links",
        "Links and clocks",
        GPU,
        (
            ChartPanel(("pcie_rx_bytes_s",)),
            ChartPanel(("pcie_tx_bytes_s",)),
            ChartPanel(("nvlink_rx_bytes_s",)),
            ChartPanel(("nvlink_tx_bytes_s",)),
            ChartPanel(("memory_clock_mhz",)),
            ChartPanel(("memory_temperature_c",)),
            ChartPanel(("fan_pct",), quiet=True),
        ),
    ),
    ChartGroup(
        "host",
        "Machine",
        HOST,
        (
            ChartPanel(("cpu_pct",)),
            ChartPanel(("memory_used_bytes",), "Memory", limit="memory_bytes"),
            ChartPanel(("load_1",)),
            ChartPanel(("disk_read_bytes_s", "disk_write_bytes_s"), "Disk"),
            ChartPanel(("network_rx_bytes_s", "network_tx_bytes_s"), "Network"),
            ChartPanel(("infiniband_rx_bytes_s", "infiniband_tx_bytes_s"), "InfiniBand"),
            ChartPanel(("disk_free_bytes",)),
            ChartPanel(("swap_used_bytes",), quiet=True),
        ),
    ),
)


def chart_config(
    gpus: Iterable[Gpu] = (),
    *,
    nodes: Mapping[str, int] | None = None,
    scopes: tuple[str, ...] = (GPU, HOST),
    labels: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Returns the JSON for `<section data-mount="charts">`, described in static/js/charts/grid.js.

    `gpus` in the order of the legend; `nodes`: name -> bytes of memory; `labels`: UUID -> label that replaces
    the default one."""
    legend = list(gpus)
    subjects: dict[str, dict[str, object]] = {
        gpu.uuid: {
            "label": (labels or {}).get(gpu.uuid) or _name(gpu, legend),
            "title": " ".join(filter(None, (gpu.name, gpu.profile))),
            "memory_bytes": gpu.memory_bytes,
            "is_part": bool(gpu.parent),
        }
        for gpu in legend
    }
    subjects.update({name: {"label": name, "memory_bytes": memory} for name, memory in (nodes or {}).items()})
    return {"groups": [_group(group) for group in GROUPS if group.scope in scopes], "subjects": subjects}


def _name(gpu: Gpu, gpus: list[Gpu]) -> str:
    """Returns a label such as "GPU 6", or "GPU 6.0" for a MIG device."""
    siblings = [other.uuid for other in gpus if gpu.parent and other.parent == gpu.parent]
    return f"GPU {gpu.index}" + (f".{siblings.index(gpu.uuid)}" if siblings else "")


def _group(group: ChartGroup) -> dict[str, object]:
    panels = [_panel(panel, group.scope) for panel in group.panels]
    return {"key": group.key, "label": group.label, "open": group.open, "panels": panels}


def _panel(panel: ChartPanel, scope: str) -> dict[str, object]:
    metrics = [(GPU_KEYS if scope == GPU else HOST_KEYS)[key] for key in panel.metrics]
    labels = [
        metric.label.removeprefix(panel.label).strip() if panel.label else metric.label for metric in metrics
    ]
    return {
        "label": panel.label or metrics[0].label,
        "unit": metrics[0].unit,
        "scope": scope,
        "limit": panel.limit,
        "quiet": panel.quiet,
        "metrics": [
            {"key": metric.key, "label": label} for metric, label in zip(metrics, labels, strict=True)
        ],
    }
