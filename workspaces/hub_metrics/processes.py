"""What all processes of the hub have last measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from prometheus_client.core import Metric

from workspaces.hub_metrics import snapshots
from workspaces.hub_metrics.models import HubProcess
from workspaces.hub_metrics.publisher import SILENT_AFTER
from workspaces.hub_metrics.snapshots import Snapshot


@dataclass(frozen=True)
class MeasuredProcess:
    """`recent`: what it observed in the last `seconds`. `is_silent`: it has stored nothing for so long that
    it has ended or hangs."""

    row: HubProcess
    is_silent: bool
    recent: Snapshot
    seconds: float


def measured_processes(now: datetime) -> list[MeasuredProcess]:
    """Returns all processes, by name, also those that were lost within the last hour."""
    return [_process(row, now) for row in HubProcess.objects.order_by("kind", "name")]


def _process(row: HubProcess, now: datetime) -> MeasuredProcess:
    later, earlier = snapshots.snapshot_from_json(row.measured), snapshots.snapshot_from_json(row.earlier)
    is_silent = now - row.measured_at > SILENT_AFTER
    return MeasuredProcess(row, is_silent, snapshots.increase(later, earlier), row.earlier_s)


def living_process_families(now: datetime) -> Iterator[Metric]:
    """Yields what the living processes have measured since each started, for Prometheus."""
    rows = HubProcess.objects.filter(measured_at__gte=now - SILENT_AFTER).order_by("name")
    return snapshots.process_families({row.name: snapshots.snapshot_from_json(row.measured) for row in rows})
