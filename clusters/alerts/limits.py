"""The limits of the alert rules: the installation's settings, and other values per cluster (docs/alerts.md).
0 disables a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.conf import settings


@dataclass(frozen=True)
class AlertLimits:
    idle_minutes: float = 15
    idle_pct: float = 5
    hang_minutes: float = 5
    hang_power_pct: float = 25
    throttle_s: float = 60
    gpu_c: float = 90
    gpu_memory_c: float = 100
    gpu_memory_pct: float = 97
    ecc: bool = True
    xid_quiet_minutes: float = 60
    remapped_rows: bool = True
    retired_pages: bool = True
    pcie_minutes: float = 5
    gpu_lost: bool = True
    stray_minutes: float = 5
    nvml_s: float = 30
    silent_s: float = 30
    disk_free_bytes: float = 5 * 2**30
    host_memory_pct: float = 95
    port_s: float = 30
    clock_s: float = 5
    unbalanced_minutes: float = 10
    run_silent_minutes: float = 30
    lasting_s: float = 60
    hold_s: float = 60


@dataclass(frozen=True)
class LimitTable:
    """The limits of every cluster. `by_cluster`: those of the clusters (by id) that differ from `common`."""

    common: AlertLimits
    by_cluster: Mapping[int, AlertLimits] = field(default_factory=dict)

    def of(self, cluster_id: int | None) -> AlertLimits:
        return self.common if cluster_id is None else self.by_cluster.get(cluster_id, self.common)


def default_limits() -> AlertLimits:
    """Returns the limits that the settings give."""
    return AlertLimits(
        idle_minutes=settings.ALERT_IDLE_MINUTES,
        idle_pct=settings.ALERT_IDLE_PERCENT,
        hang_minutes=settings.ALERT_HANG_MINUTES,
        hang_power_pct=settings.ALERT_HANG_POWER_PERCENT,
        throttle_s=settings.ALERT_THROTTLE_SECONDS,
        gpu_c=settings.ALERT_GPU_CELSIUS,
        gpu_memory_c=settings.ALERT_GPU_MEMORY_CELSIUS,
        gpu_memory_pct=settings.ALERT_GPU_MEMORY_PERCENT,
        ecc=settings.ALERT_ECC,
        xid_quiet_minutes=settings.ALERT_XID_QUIET_MINUTES,
        remapped_rows=settings.ALERT_REMAPPED_ROWS,
        retired_pages=settings.ALERT_RETIRED_PAGES,
        pcie_minutes=settings.ALERT_PCIE_MINUTES,
        gpu_lost=settings.ALERT_GPU_LOST,
        stray_minutes=settings.ALERT_STRAY_MINUTES,
        nvml_s=settings.ALERT_NVML_SECONDS,
        silent_s=settings.ALERT_SILENT_SECONDS,
        disk_free_bytes=settings.ALERT_DISK_FREE_BYTES,
        host_memory_pct=settings.ALERT_HOST_MEMORY_PERCENT,
        port_s=settings.ALERT_PORT_SECONDS,
        clock_s=settings.ALERT_CLOCK_SECONDS,
        unbalanced_minutes=settings.ALERT_UNBALANCED_MINUTES,
        run_silent_minutes=settings.ALERT_RUN_SILENT_MINUTES,
        lasting_s=settings.ALERT_LASTING_SECONDS,
        hold_s=settings.ALERT_HOLD_SECONDS,
    )
