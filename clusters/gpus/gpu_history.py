"""The runs that held a GPU in a time span, as one workspace may know them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from django.db.models import Q

from clusters.gpus.gpu_cells import LeaseSummary, lease_summary
from clusters.models import Gpu, Lease, Node
from clusters.ranges import TimeSpan
from clusters.telemetry import series
from workspaces.models import Workspace

MAX_LEASES = 2000
POINTS = 720
LOAD = "utilization_pct"


@dataclass(frozen=True)
class GpuUse:
    """A run on the GPU; `start` and `end` are Unix seconds, `end` None while it still holds the GPU.

    `used_s`: seconds within the span; `utilization_pct`: the mean of that time, or None if it is unknown.
    """

    line: LeaseSummary
    start: float
    end: float | None
    used_s: float
    utilization_pct: float | None

    @property
    def hours_used(self) -> float:
        return self.used_s / 3600

    @property
    def began(self) -> datetime:
        return datetime.fromtimestamp(self.start, UTC)

    @property
    def ended(self) -> datetime | None:
        return None if self.end is None else datetime.fromtimestamp(self.end, UTC)


@dataclass(frozen=True)
class GpuHistory:
    """The uses in the span, the latest first. `hours`: the past part of the span."""

    uses: tuple[GpuUse, ...]
    hours: float

    @property
    def hours_used(self) -> float:
        return sum(use.used_s for use in self.uses) / 3600

    @property
    def used_pct(self) -> float:
        return 100 * self.hours_used / self.hours if self.hours else 0.0


def history(gpu: Gpu, span: TimeSpan, workspace: Workspace, now: float) -> GpuHistory:
    """Returns the uses of the GPU on its present node. The history of a moved GPU has its curves, but not its
    earlier runs."""
    since, until = (datetime.fromtimestamp(at, UTC) for at in (span.start, span.end))
    leases = Lease.objects.filter(
        Q(released_at=None) | Q(released_at__gt=since), node=gpu.node_id, created_at__lt=until
    )
    # Only the newest rows are read, because SQLite cannot query the content of a JSON list.
    gpu_leases = [lease for lease in leases.order_by("-pk")[:MAX_LEASES] if gpu.uuid in lease.gpus]
    if not gpu_leases:
        return GpuHistory((), _hours(span, now))
    load = _Load(gpu, span)
    return GpuHistory(
        tuple(_use(lease, span, workspace, load, now) for lease in gpu_leases), _hours(span, now)
    )


def _use(lease: Lease, span: TimeSpan, workspace: Workspace, load: _Load, now: float) -> GpuUse:
    start = lease.created_at.timestamp()
    end = None if lease.released_at is None else lease.released_at.timestamp()
    visible = max(start, span.start), min(now if end is None else end, span.end)
    return GpuUse(
        line=lease_summary(lease, workspace),
        start=start,
        end=end,
        used_s=max(0.0, visible[1] - visible[0]),
        utilization_pct=load.mean(*visible),
    )


class _Load:
    """The GPU's utilisation over the span, read once."""

    def __init__(self, gpu: Gpu, span: TimeSpan) -> None:
        node = Node.objects.filter(pk=gpu.node_id)
        read = series.read_gpu(gpu, node, gpu_metrics=[LOAD], start=span.start, end=span.end, points=POINTS)
        curve = read.gpus.get(gpu.uuid, {}).get(LOAD)
        self._times = read.grid.times
        self._step_s = read.grid.step_s
        self._mean = None if curve is None else curve.mean

    def mean(self, start: float, end: float) -> float | None:
        if self._mean is None:
            return None
        # Only points entirely within the use count; a use shorter than a point has no mean.
        within = self._mean[(self._times >= start) & (self._times + self._step_s <= end)]
        values = within[~np.isnan(within)]
        return float(values.mean()) if values.size else None


def _hours(span: TimeSpan, now: float) -> float:
    return max(0.0, min(now, span.end) - span.start) / 3600
