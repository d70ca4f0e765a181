"""GPUs as metric families. Unknown values are absent; so are the measurements of silent nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric

from clusters.models import Gpu, Node
from jobs.prometheus.holders import LABELS, NO_HOLDER
from trainhub_launch.machine import GPU_OK
from trainhub_launch.metrics import COUNTERS, GPU_METRICS, MIB

# The labels of DCGM's exporter. `instance` is the node, so that dashboards for one exporter per machine work.
DEVICE = (
    "instance",
    "gpu",
    "UUID",
    "device",
    "modelName",
    "Hostname",
    "DCGM_FI_DRIVER_VERSION",
    "GPU_I_PROFILE",
    "cluster",
)
ALL = (*DEVICE, *LABELS)
Devices = Sequence[tuple[Node, Sequence[Gpu]]]
Holders = Mapping[str, tuple[str, ...]]


def families(fleet: Devices, silent: set[int], holders: Holders) -> Iterator[Metric]:
    """Yields all GPU metrics. `fleet`: every node with its GPUs. `silent`: primary keys of nodes that do not
    report; their measurements are omitted."""
    rows = [(node, gpu, _labels(node, gpu, holders)) for node, gpus in fleet for gpu in gpus]
    ready = [(node, gpu, labels) for node, gpu, labels in rows if node.pk not in silent]
    numbers = [(labels, node.vitals.get("gpus", {}).get(gpu.uuid, {})) for node, gpu, labels in ready]
    for metric in GPU_METRICS:
        name = metric.dcgm or f"trainhub_gpu_{metric.key}"
        gauge = GaugeMetricFamily(
            name, f"{metric.label}{f' ({metric.unit})' if not metric.dcgm else ''}.", labels=ALL
        )
        for labels, values in numbers:
            if metric.key in values:
                gauge.add_metric(labels, values[metric.key] * metric.dcgm_scale)
        yield gauge
    yield from _memory(ready)
    yield from _counters(
        [(labels, node.vitals.get("counters", {}).get(gpu.uuid, {})) for node, gpu, labels in ready]
    )
    state = GaugeMetricFamily(
        "trainhub_gpu_healthy", "1 while the GPU answers, 0 once it has fallen off the bus.", labels=ALL
    )
    busy = GaugeMetricFamily("trainhub_gpu_held", "1 while a run holds the GPU.", labels=ALL)
    for _, gpu, labels in rows:
        state.add_metric(labels, float(gpu.state == GPU_OK))
        busy.add_metric(labels, float(gpu.uuid in holders))
    yield state
    yield busy


def _labels(node: Node, gpu: Gpu, holders: Holders) -> tuple[str, ...]:
    return (
        node.name,
        str(gpu.index),
        gpu.uuid,
        f"nvidia{gpu.index}",
        gpu.name,
        node.hostname,
        node.driver,
        gpu.profile,
        node.cluster.name,
        *holders.get(gpu.uuid, NO_HOLDER),
    )


def _memory(ready: list[tuple[Node, Gpu, tuple[str, ...]]]) -> Iterator[Metric]:
    total = GaugeMetricFamily("DCGM_FI_DEV_FB_TOTAL", "Memory of the GPU (MiB).", labels=ALL)
    free = GaugeMetricFamily(
        "DCGM_FI_DEV_FB_FREE", "Memory that is neither used nor reserved (MiB).", labels=ALL
    )
    for node, gpu, labels in ready:
        if gpu.memory_bytes is None:
            continue
        total.add_metric(labels, gpu.memory_bytes * MIB)
        values = node.vitals.get("gpus", {}).get(gpu.uuid, {})
        if "memory_used_bytes" in values:
            free_bytes = (
                gpu.memory_bytes - values["memory_used_bytes"] - values.get("memory_reserved_bytes", 0)
            )
            free.add_metric(labels, free_bytes * MIB)
    yield total
    yield free


def _counters(rows: list[tuple[tuple[str, ...], dict[str, Any]]]) -> Iterator[Metric]:
    # Gauges throughout: as counters the library would end their names in _total, which those of DCGM do not.
    for key, (label, dcgm) in COUNTERS.items():
        gauge = GaugeMetricFamily(dcgm or f"trainhub_gpu_{key}", f"{label}.", labels=ALL)
        for labels, counters in rows:
            if key in counters:
                gauge.add_metric(labels, counters[key])
        yield gauge
