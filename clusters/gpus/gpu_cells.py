"""What is shown of a lease and of a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from clusters.models import Gpu, Lease
from clusters.states import GpuUsage
from trainhub_launch.machine import GPU_OK
from workspaces.models import Workspace

IDLE_BELOW_PCT = 5.0


@dataclass(frozen=True)
class LeaseSummary:
    """A lease for display. For another workspace's lease `holder` is empty and the label is "busy"; `key` is
    never shown."""

    holder: str
    label: str
    gpus: tuple[str, ...]
    slots: int
    since: datetime
    key: tuple[str, int]


@dataclass(frozen=True)
class GpuCell:
    """A device with its latest numbers and counters; unknown ones are absent, or None as a property. `lease`
    None = no run holds it. `is_used`: a process uses it. `fault`: why it is unhealthy, "" = it is not."""

    gpu: Gpu
    lease: LeaseSummary | None
    numbers: Mapping[str, float]
    counters: Mapping[str, int]
    is_used: bool = False
    fault: str = ""

    @property
    def is_free(self) -> bool:
        """Whether no run holds it and it works, so that a run can get it."""
        return self.lease is None and self.gpu.state == GPU_OK and not self.fault

    @property
    def utilization_pct(self) -> float | None:
        return self.numbers.get("utilization_pct")

    @property
    def memory_used_bytes(self) -> float | None:
        return self.numbers.get("memory_used_bytes")

    @property
    def power_w(self) -> float | None:
        return self.numbers.get("power_w")

    @property
    def temperature_c(self) -> float | None:
        return self.numbers.get("temperature_c")

    @property
    def memory_pct(self) -> float | None:
        return share_pct(self.memory_used_bytes, self.gpu.memory_bytes)

    @property
    def usage(self) -> GpuUsage:
        if self.gpu.state != GPU_OK:
            return GpuUsage.LOST
        if self.fault:
            return GpuUsage.UNHEALTHY
        if self.lease is None:
            return GpuUsage.FOREIGN if self.is_used else GpuUsage.FREE
        is_idle = self.utilization_pct is not None and self.utilization_pct < IDLE_BELOW_PCT
        return GpuUsage.IDLE if is_idle else GpuUsage.BUSY


@dataclass(frozen=True)
class GpuDevice:
    """A physical GPU with its MIG devices."""

    cell: GpuCell
    parts: tuple[GpuCell, ...]


def lease_summary(lease: Lease, workspace: Workspace | None) -> LeaseSummary:
    is_ours = workspace is not None and lease.workspace_id == workspace.pk
    return LeaseSummary(
        holder=lease.holder if is_ours else "",
        label=lease.label if is_ours else "busy",
        gpus=tuple(lease.gpus),
        slots=lease.slots,
        since=lease.created_at,
        key=(lease.holder, lease.attempt),
    )


def share_pct(part: float | None, whole: float | None) -> float | None:
    """Returns which part of `whole` it is, at most 100 %; None if either is unknown."""
    return None if part is None or not whole else min(100.0, 100.0 * part / whole)
