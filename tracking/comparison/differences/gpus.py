"""The GPUs of runs and their load in the last attempt."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from clusters.models import Gpu, Lease, Node
from clusters.telemetry.series import MetricCurve
from jobs import run_curves
from jobs.display.text import bytesize
from jobs.models import Attempt, Run
from jobs.run_curves import CurveQuery, CurveReader
from tracking.amounts import energy, hours
from tracking.comparison.differences.sheet import Facts, facts_table
from tracking.comparison.tables import ComparisonTable
from tracking.usage import usage_report

POINTS = 600
SENSORS = ("utilization_pct", "memory_used_bytes", "power_w", "temperature_c")
MAX_READ_S = 6.0
ORDER = (
    "GPUs",
    "Memory of each",
    "Nodes",
    "Driver",
    "GPU-hours",
    "Energy",
    "Utilisation, mean",
    "Utilisation, highest",
    "Memory, mean",
    "Memory, highest",
    "Power, mean",
    "Temperature, highest",
)


def compare_gpus(runs: Sequence[Run]) -> ComparisonTable:
    """Compares the runs' GPUs; the first run is the base. Curves that cannot be read within MAX_READ_S are
    left out."""
    usage = usage_report.hours_by_run([run.pk for run in runs])
    deadline = time.monotonic() + MAX_READ_S
    return facts_table(
        runs, {run.pk: {**_facts(run, deadline), **_usage_facts(usage.get(run.pk))} for run in runs}, ORDER
    )


def _usage_facts(usage: tuple[float, float | None] | None) -> Facts:
    if usage is None:
        return {}
    return {"GPU-hours": hours(usage[0]), **({"Energy": energy(usage[1])} if usage[1] is not None else {})}


def _facts(run: Run, deadline: float) -> Facts:
    attempt = Attempt.objects.filter(run=run, number=run.attempt).defer("plan", "placement").first()
    leases = list(
        Lease.objects.filter(holder=run.pk, attempt=run.attempt).select_related("node").order_by("node__name")
    )
    if attempt is None or not leases:
        return {}
    uuids = [uuid for lease in leases for uuid in lease.gpus]
    nodes = {"Nodes": ", ".join(lease.node.name for lease in leases)}
    if not uuids:
        return {"GPUs": "none", **nodes}
    devices = {**_devices(uuids), **nodes, **_drivers([lease.node for lease in leases])}
    return devices if time.monotonic() > deadline else {**devices, **_sensors(attempt, leases)}


def _devices(uuids: Sequence[str]) -> Facts:
    gpus_by_uuid = {gpu.uuid: gpu for gpu in Gpu.objects.filter(uuid__in=uuids)}
    names = Counter(
        gpus_by_uuid[uuid].name if uuid in gpus_by_uuid else "of an unknown kind" for uuid in uuids
    )
    sizes = sorted({gpu.memory_bytes for gpu in gpus_by_uuid.values() if gpu.memory_bytes})
    memory = {"Memory of each": ", ".join(bytesize(size) for size in sizes)} if sizes else {}
    return {"GPUs": ", ".join(f"{count} × {name}" for name, count in sorted(names.items())), **memory}


def _drivers(nodes: Sequence[Node]) -> Facts:
    """Returns the drivers that the nodes report now, which may differ from those during the run."""
    drivers = sorted(
        {f"{node.driver} (CUDA {node.cuda})" if node.cuda else node.driver for node in nodes if node.driver}
    )
    return {"Driver": ", ".join(drivers)} if drivers else {}


def _sensors(attempt: Attempt, leases: Sequence[Lease]) -> Facts:
    start, end = run_curves.span(attempt, datetime.now(UTC))
    reader, query = CurveReader(attempt), CurveQuery(SENSORS, (), start, end, POINTS)
    by_metric: dict[str, list[MetricCurve]] = {}
    for lease in leases:
        for gpu in reader.read(lease.node, lease.gpus, query).gpus.values() if lease.gpus else ():
            for metric, curve in gpu.items():
                by_metric.setdefault(metric, []).append(curve)
    return _sensor_facts(by_metric)


def _sensor_facts(by_metric: Mapping[str, Sequence[MetricCurve]]) -> Facts:
    mean = {
        metric: float(np.nanmean(np.concatenate([curve.mean for curve in curves])))
        for metric, curves in by_metric.items()
    }
    maximum = {
        metric: float(np.nanmax(np.concatenate([curve.max for curve in curves])))
        for metric, curves in by_metric.items()
    }
    rows = {
        "Utilisation, mean": ("utilization_pct", mean, "{:.0f} %".format),
        "Utilisation, highest": ("utilization_pct", maximum, "{:.0f} %".format),
        "Memory, mean": ("memory_used_bytes", mean, bytesize),
        "Memory, highest": ("memory_used_bytes", maximum, bytesize),
        "Power, mean": ("power_w", mean, "{:.0f} W".format),
        "Temperature, highest": ("temperature_c", maximum, "{:.0f} °C".format),
    }
    return {word: spell(values[metric]) for word, (metric, values, spell) in rows.items() if metric in values}
