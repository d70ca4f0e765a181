"""The thresholds that operators may change, for one cluster or for all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.db import transaction
from django.utils import timezone

from clusters.alerts.limits import AlertLimits, LimitTable, default_limits
from clusters.models import AlertThreshold, Cluster
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.models import User

GIB = 2**30
DAY_MINUTES, DAY_S = 1440.0, 86400.0


@dataclass(frozen=True)
class Threshold:
    """A threshold of the rule `kind`. `field`: its field of AlertLimits, which is `scale` times the value; ""
    = the field that is called `name`."""

    kind: str
    name: str
    label: str
    unit: str
    maximum: float
    field: str = ""
    scale: int = 1

    @property
    def limit(self) -> str:
        return self.field or self.name

    def read(self, limits: AlertLimits) -> float:
        return float(getattr(limits, self.limit)) / self.scale


THRESHOLDS = (
    Threshold("gpu_idle", "idle_minutes", "Idle for", "min", 7 * DAY_MINUTES),
    Threshold("gpu_idle", "idle_pct", "Idle means utilisation below", "%", 100),
    Threshold("gpu_hang", "hang_minutes", "Busy at idle power for", "min", 7 * DAY_MINUTES),
    Threshold("gpu_hang", "hang_power_pct", "Idle power means below, of the power limit", "%", 100),
    Threshold("gpu_throttled", "throttle_s", "Slowed down for", "s", DAY_S),
    Threshold("gpu_hot", "gpu_c", "GPU temperature from", "°C", 150),
    Threshold("gpu_hot", "gpu_memory_c", "Memory temperature from", "°C", 150),
    Threshold("gpu_memory", "gpu_memory_pct", "Memory used from", "%", 100),
    Threshold("gpu_xid", "xid_quiet_minutes", "Clears after quiet for", "min", DAY_MINUTES),
    Threshold("gpu_pcie", "pcie_minutes", "Fewer lanes for", "min", 7 * DAY_MINUTES),
    Threshold("gpu_stray", "stray_minutes", "In use for", "min", 7 * DAY_MINUTES),
    Threshold("node_silent", "silent_s", "Silent for", "s", DAY_S),
    Threshold("node_nvml", "nvml_s", "Unreadable for", "s", DAY_S),
    Threshold("node_disk", "disk_free_gib", "Free space below", "GiB", 1_000_000, "disk_free_bytes", GIB),
    Threshold("node_memory", "host_memory_pct", "Memory used from", "%", 100),
    Threshold("node_port", "port_s", "Port down for", "s", DAY_S),
    Threshold("node_clock", "clock_s", "Clock off by", "s", DAY_S),
    Threshold("run_silent", "run_silent_minutes", "No output and no metric for", "min", 7 * DAY_MINUTES),
    Threshold("run_unbalanced", "unbalanced_minutes", "Unbalanced for", "min", 7 * DAY_MINUTES),
)
BY_NAME = {threshold.name: threshold for threshold in THRESHOLDS}


def load_limits() -> LimitTable:
    """Returns the limits that hold now, in one query."""
    values = values_by_cluster()
    common = _changed(default_limits(), values.get(None, {}))
    return LimitTable(common, {pk: _changed(common, own) for pk, own in values.items() if pk is not None})


def values_by_cluster() -> dict[int | None, dict[str, float]]:
    """Returns the values that operators have set, by the id of the cluster, None for all clusters."""
    values: dict[int | None, dict[str, float]] = {}
    # A threshold that a later version set is none of ours.
    for row in AlertThreshold.objects.filter(name__in=BY_NAME):
        values.setdefault(row.cluster_id, {})[row.name] = row.value
    return values


def inherited(cluster: Cluster | None) -> AlertLimits:
    """Returns the limits that hold where `cluster` (None = all clusters) has no value of its own."""
    limits = default_limits()
    return limits if cluster is None else _changed(limits, values_by_cluster().get(None, {}))


def change(cluster: Cluster | None, values: Mapping[str, float | None], who: User) -> tuple[str, ...]:
    """Sets the thresholds of the cluster (None = all clusters) that `values` names; None removes one. Returns
    the names of those that changed. Raises SpecError that names the threshold whose value is impossible."""
    for name, value in values.items():
        _check(BY_NAME[name], value)
    with transaction.atomic():
        before = values_by_cluster().get(None if cluster is None else cluster.pk, {})
        changed = {name: value for name, value in values.items() if value != before.get(name)}
        AlertThreshold.objects.filter(cluster=cluster, name__in=changed).delete()
        now = timezone.now()
        AlertThreshold.objects.bulk_create(
            AlertThreshold(cluster=cluster, name=name, value=value, set_by=who.get_username(), set_at=now)
            for name, value in changed.items()
            if value is not None
        )
        if changed:
            subject = "all clusters" if cluster is None else cluster.name
            audit.record(who, "alert_thresholds.changed", subject, values=changed)
    return tuple(changed)


def _check(threshold: Threshold, value: float | None) -> None:
    if value is not None and not (math.isfinite(value) and 0 <= value <= threshold.maximum):
        raise SpecError(
            threshold.name, f"must be between 0 (which switches the rule off) and {threshold.maximum:g}"
        )


def _changed(limits: AlertLimits, values: Mapping[str, float]) -> AlertLimits:
    # By name, and not as keyword arguments of their types: every one of these limits is a number.
    thresholds = ((BY_NAME[name], value) for name, value in values.items())
    scaled = {threshold.limit: value * threshold.scale for threshold, value in thresholds}
    return replace(limits, **scaled)  # type: ignore[arg-type]
