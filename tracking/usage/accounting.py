"""Accounts the usage of attempts by month: rows are updated while an attempt runs and become final once it is
settled. They outlive their runs.

GPU and node time count from placement to release, also while a lost node keeps GPUs in quarantine. Energy is
the measured GPU power (means over at least ten seconds) times the duration; time without measurements is not
estimated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from clusters.models import Lease, StoredSeries
from clusters.telemetry.attempt_curves import MAX_POINTS
from clusters.telemetry.series import MetricCurve, NodeSeries
from jobs.models import Attempt, Run
from jobs.run_curves import MAX_SETTLE_WAIT, CurveQuery, CurveReader
from tracking.models import UsageEntry
from tracking.usage.months import month_of, split_by_month
from workspaces.database.compiled_queries import compiled

log = logging.getLogger(__name__)
POWER = "power_w"
# Curves of a node that was cut off may come that late.
RECENT = timedelta(days=3)
BATCH_SIZE = 200
UPDATED_FIELDS = [
    "run",
    "experiment_name",
    "user_name",
    "cluster_name",
    "gpus",
    "gpu_seconds",
    "node_seconds",
    "energy_j",
    "is_final",
]


@dataclass
class UsageAmounts:
    gpu_seconds: float = 0.0
    node_seconds: float = 0.0
    energy_j: float | None = None


def account_recent(now: datetime | None = None) -> int:
    """Updates the rows of attempts that are running or ended within RECENT; returns how many attempts."""
    at = now or datetime.now(UTC)
    return _account_all(_unsettled_attempts().exclude(ended_at__lt=at - RECENT), at)


def account_history(now: datetime | None = None) -> int:
    """Updates the rows of all attempts that are not final, also old ones; returns how many attempts."""
    at = now or datetime.now(UTC)
    return _account_all(_unsettled_attempts(), at)


def finalize_run(run: Run, now: datetime | None = None) -> None:
    """Makes the run's usage final before the run is purged."""
    at = now or datetime.now(UTC)
    for attempt in _unsettled_attempts().filter(run=run):
        account_attempt(attempt, at, is_final=True)


def account_attempt(attempt: Attempt, now: datetime, *, is_final: bool | None = None) -> None:
    """Rewrites the attempt's rows; they become final once nothing more can change them."""
    leases = _leases(attempt.run_id, attempt.number)
    usage = usage_by_month(attempt, leases, now)
    is_settled = _is_settled(attempt, leases, now) if is_final is None else is_final
    run = attempt.run
    rows = [
        UsageEntry(
            workspace_id=run.workspace_id,
            run=run,
            run_number=run.number,
            attempt=attempt.number,
            month=month,
            experiment_name=run.experiment.name,
            user_name=run.created_by.get_username() if run.created_by else "",
            cluster_name=run.spec.get("resources", {}).get("cluster", ""),
            gpus=sum(len(lease.gpus) for lease in leases),
            gpu_seconds=amounts.gpu_seconds,
            node_seconds=amounts.node_seconds,
            energy_j=amounts.energy_j,
            is_final=is_settled,
        )
        for month, amounts in usage.items()
    ]
    key = run.workspace_id, run.number, attempt.number
    with transaction.atomic():
        # A run that was expected to last into the next month may have ended before it.
        former = [pk for pk, month in _months(*key) if month not in usage]
        if former:
            UsageEntry.objects.filter(pk__in=former).delete()
        UsageEntry.objects.bulk_create(
            rows,
            update_conflicts=True,
            update_fields=UPDATED_FIELDS,
            unique_fields=["workspace", "run_number", "attempt", "month"],
        )


@compiled
def _leases(holder: str, attempt: int) -> QuerySet[Lease]:
    return Lease.objects.filter(holder=holder, attempt=attempt).select_related("node").order_by("pk")


@compiled
def _months(workspace_id: int, run_number: int, attempt: int) -> QuerySet[UsageEntry, tuple[int, date]]:
    rows = UsageEntry.objects.filter(workspace_id=workspace_id, run_number=run_number, attempt=attempt)
    return rows.values_list("pk", "month")


def usage_by_month(attempt: Attempt, leases: Iterable[Lease], now: datetime) -> dict[date, UsageAmounts]:
    """Returns the usage of the leases by month; an attempt without leases has one empty month."""
    curves = CurveReader(attempt)
    by_month: dict[date, UsageAmounts] = {month_of(attempt.created_at): UsageAmounts()}
    for lease in leases:
        # The clocks of two processes may differ by a moment; no usage is negative.
        end = max(lease.created_at, lease.released_at or now)
        series = _power_series(curves, lease, end)
        for month, begin_s, end_s in split_by_month(lease.created_at, end):
            amounts = by_month.setdefault(month, UsageAmounts())
            amounts.node_seconds += end_s - begin_s
            # Allocated time counts, whether the GPUs worked or not: nobody else could use them.
            amounts.gpu_seconds += (end_s - begin_s) * len(lease.gpus)
            for joules in (energy_j(series, gpu, begin_s, end_s) for gpu in lease.gpus):
                amounts.energy_j = joules if amounts.energy_j is None else amounts.energy_j + (joules or 0.0)
    return by_month


def energy_j(series: NodeSeries | None, gpu: str, start: float, end: float) -> float | None:
    """Returns the energy in joules of one GPU between two times (Unix seconds), or None without
    measurements."""
    curve: MetricCurve | None = series.gpus.get(gpu, {}).get(POWER) if series else None
    if series is None or curve is None:
        return None
    starts = series.grid.times.astype(np.float64)
    seconds = np.clip(np.minimum(starts + series.grid.step_s, end) - np.maximum(starts, start), 0.0, None)
    measured = ~np.isnan(curve.mean) & (seconds > 0)
    return (
        float(np.sum(curve.mean[measured].astype(np.float64) * seconds[measured])) if measured.any() else None
    )


def _power_series(curves: CurveReader, lease: Lease, end: datetime) -> NodeSeries | None:
    if not lease.gpus:
        return None
    start_s, end_s = lease.created_at.timestamp(), end.timestamp()
    return curves.read(
        lease.node, lease.gpus, CurveQuery((POWER,), (), start_s, max(end_s, start_s + 1), MAX_POINTS)
    )


def _unsettled_attempts() -> QuerySet[Attempt]:
    """Returns the attempts without final rows, the oldest first."""
    final = UsageEntry.objects.filter(run=OuterRef("run"), attempt=OuterRef("number"), is_final=True)
    attempts = Attempt.objects.filter(~Exists(final)).select_related("run__experiment", "run__created_by")
    return attempts.defer("plan", "placement", "cause", "run__preview").order_by("pk")


def _account_all(attempts: QuerySet[Attempt], now: datetime) -> int:
    count, last_pk = 0, 0
    # By key instead of by offset: rows that become final meanwhile leave the query, and an offset would skip
    # others.
    while batch := list(attempts.filter(pk__gt=last_pk)[:BATCH_SIZE]):
        for attempt in batch:
            try:
                account_attempt(attempt, now)
                count += 1
            except Exception:
                log.exception(
                    "Usage of attempt %s of run %s could not be accounted", attempt.number, attempt.run_id
                )
        last_pk = batch[-1].pk
    return count


def _is_settled(attempt: Attempt, leases: Iterable[Lease], now: datetime) -> bool:
    """Returns whether usage can no longer change: all leases are released, and the curves are stored or
    overdue."""
    lease_list = list(leases)
    if attempt.ended_at is None or any(lease.released_at is None for lease in lease_list):
        return False
    nodes = {lease.node.name for lease in lease_list if lease.gpus}
    if attempt.ended_at < now - 2 * MAX_SETTLE_WAIT or not nodes:
        return True
    stored = StoredSeries.objects.filter(holder=attempt.run_id, attempt=attempt.number, node_name__in=nodes)
    return len(set(stored.values_list("node_name", flat=True))) == len(nodes)
