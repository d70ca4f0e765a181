"""What a GPU was used for over a span of time, as one workspace may know it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from django.db.models import Q

from clusters.models import Gpu, Lease, Node
from clusters.overview import LeaseSummary, lease_summary
from clusters.ranges import TimeSpan
from clusters.telemetry import series
from workspaces.models import Workspace

MOST_LEASES = 2000
POINTS = 720
LOAD = "utilization_pct"


@dataclass(frozen=True)
class GpuUse:
    """A run on the GPU; `start` and `end` are Unix seconds, `end` None while it still holds the GPU.

    `held_s`: how much of the span it held it; `utilization_pct`: the mean then, None where nothing is known.
    """

    line: LeaseSummary
    start: float
    end: float | None
    held_s: float
    utilization_pct: float | None

    @property
    def held_hours(self) -> float:
        return self.held_s / 3600

    @property
    def began(self) -> datetime:
        return datetime.fromtimestamp(self.start, UTC)

    @property
    def ended(self) -> datetime | None:
        return None if self.end is None else datetime.fromtimestamp(self.end, UTC)


@dataclass(frozen=True)
class GpuHistory:
    """The latest use first. `held_hours` within the span, of `hours`."""

    uses: tuple[GpuUse, ...]
    hours: float

    @property
    def held_hours(self) -> float:
        return sum(use.held_s for use in self.uses) / 3600

    @property
    def held_pct(self) -> float:
        return 100 * self.held_hours / self.hours if self.hours else 0.0


def history(gpu: Gpu, span: TimeSpan, workspace: Workspace, now: float) -> GpuHistory:
    """Leases are found by the node that has the GPU now: one that moved brings its curves along, not its
    runs."""
    since, until = (datetime.fromtimestamp(at, UTC) for at in (span.start, span.end))
    leases = Lease.objects.filter(
        Q(released_at=None) | Q(released_at__gt=since), node=gpu.node_id, created_at__lt=until
    )
    # The newest rows alone are read: SQLite cannot ask what a JSON list holds.
    found = [lease for lease in leases.order_by("-pk")[:MOST_LEASES] if gpu.uuid in lease.gpus]
    if not found:
        return GpuHistory((), _hours(span, now))
    load = _Load(gpu, span)
    return GpuHistory(tuple(_use(lease, span, workspace, load, now) for lease in found), _hours(span, now))


def _use(lease: Lease, span: TimeSpan, workspace: Workspace, load: _Load, now: float) -> GpuUse:
    start = lease.created_at.timestamp()
    end = None if lease.released_at is None else lease.released_at.timestamp()
    shown = max(start, span.start), min(now if end is None else end, span.end)
    return GpuUse(
        line=lease_summary(lease, workspace),
        start=start,
        end=end,
        held_s=max(0.0, shown[1] - shown[0]),
        utilization_pct=load.mean(*shown),
    )


class _Load:
    """The GPU's utilisation over the span, read once."""

    def __init__(self, gpu: Gpu, span: TimeSpan) -> None:
        node = Node.objects.filter(pk=gpu.node_id)
        found = series.read_gpu(gpu, node, gpu_metrics=[LOAD], start=span.start, end=span.end, points=POINTS)
        curve = found.gpus.get(gpu.uuid, {}).get(LOAD)
        self._times = found.grid.times
        self._step_s = found.grid.step_s
        self._mean = None if curve is None else curve.mean

    def mean(self, start: float, end: float) -> float | None:
        if self._mean is None:
            return None
        # Points that lie in it wholly; a use shorter than a point has none, and then nothing is claimed.
        within = self._mean[(self._times >= start) & (self._times + self._step_s <= end)]
        known = within[~np.isnan(within)]
        return float(known.mean()) if known.size else None


def _hours(span: TimeSpan, now: float) -> float:
    return max(0.0, min(now, span.end) - span.start) / 3600
