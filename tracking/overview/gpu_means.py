"""What the GPUs of an attempt did while its ranks ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.utils import timezone

from clusters.models import Node
from jobs.models import Attempt, Member, Run
from jobs.run_curves import CurveQuery, CurveReader, gpus_of_run

METRICS = ("utilization_pct", "memory_used_bytes", "power_w", "temperature_c")
POINTS = 300


@dataclass(frozen=True)
class GpuMeans:
    """Means over `gpus` GPUs and the time in which the ranks ran, and the highest temperature. None: not
    measured."""

    gpus: int
    utilization_pct: float | None
    memory_used_bytes: float | None
    power_w: float | None
    hottest_c: float | None


def gpu_means(run: Run, attempt: int) -> GpuMeans | None:
    """Returns None for a run without GPUs, or before its ranks have started."""
    members = list(Member.objects.filter(attempt__run=run, attempt__number=attempt).exclude(started_at=None))
    gpus = {node: uuids for node, uuids in gpus_of_run(members).items() if uuids}
    row = Attempt.objects.filter(run=run, number=attempt).first()
    if not gpus or row is None:
        return None
    start = min(member.started_at for member in members if member.started_at is not None).timestamp()
    end = max(member.ended_at or timezone.now() for member in members).timestamp()
    query = CurveQuery(METRICS, (), start, max(end, start + 1), POINTS)
    reader = CurveReader(row)
    nodes = Node.objects.in_bulk(gpus)
    series = [reader.read(nodes[node], uuids, query).gpus for node, uuids in gpus.items()]
    curves = [curve for by_gpu in series for curve in by_gpu.values()]

    def mean_of(metric: str) -> float | None:
        return _mean([curve[metric].mean for curve in curves if metric in curve])

    peaks = [curve["temperature_c"].max for curve in curves if "temperature_c" in curve]
    measured = [peak[~np.isnan(peak)] for peak in peaks]
    return GpuMeans(
        sum(map(len, gpus.values())),
        mean_of("utilization_pct"),
        mean_of("memory_used_bytes"),
        mean_of("power_w"),
        max((float(peak.max()) for peak in measured if len(peak)), default=None),
    )


def _mean(curves: Sequence[np.ndarray]) -> float | None:
    values = np.concatenate([curve[~np.isnan(curve)] for curve in curves]) if curves else np.empty(0)
    return float(values.mean()) if len(values) else None
