"""When runs last logged a metric."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Max

from tracking.models import Metric, MetricSlice

# A clock that is further ahead says nothing about when a point was logged.
MAX_AHEAD_S = 60


def seconds_since(run_ids: Collection[str], now: float) -> dict[str, float]:
    """Returns run id -> seconds since its last point, by the time in the point, or by that of its arrival
    while it is stored in a slice. Runs without metrics are absent. `now`: Unix seconds."""
    limit_ms = round((now + MAX_AHEAD_S) * 1000)
    points = Metric.objects.filter(run__in=run_ids, last_ms__lte=limit_ms)
    last = {run_id: ms / 1000 for run_id, ms in points.values_list("run").annotate(Max("last_ms"))}
    slices = MetricSlice.objects.filter(run__in=run_ids)
    for run_id, at in slices.values_list("run").annotate(Max("created_at")):
        last[run_id] = max(last.get(run_id, 0.0), at.timestamp())
    return {run_id: max(0.0, now - at) for run_id, at in last.items()}
