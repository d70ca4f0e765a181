"""What attempts use, written down month by month: kept up to date while they last, final once they are
settled. The rows outlive their runs.

GPU and node time are what was held: from placement to release, also where a lost node keeps GPUs in
quarantine. Energy is the GPUs' power as it was measured meanwhile (means of ten seconds or more) times the
time; what was not measured is not guessed."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from clusters.models import KeptSeries, Lease
from clusters.telemetry.attempt_curves import MOST_POINTS
from clusters.telemetry.series import Curve, NodeSeries
from jobs.models import Attempt, Run
from jobs.run_curves import NOT_WAITED_FOR, Curves, Wanted
from tracking.models import UsageEntry
from tracking.usage.months import month_of, split

log = logging.getLogger(__name__)
POWER = "power_w"
LATELY = timedelta(days=3)
AT_ONCE = 200
COUNTED = [
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
class Used:
    gpu_seconds: float = 0.0
    node_seconds: float = 0.0
    energy_j: float | None = None


def account_lately(now: datetime | None = None) -> int:
    """Bring the rows of attempts that live, or ended lately, up to date; of how many."""
    at = now or datetime.now(UTC)
    return _account_all(_open().exclude(ended_at__lt=at - LATELY), at)


def account_history(now: datetime | None = None) -> int:
    """The same of every attempt that ended before anybody counted, or was not settled for long."""
    at = now or datetime.now(UTC)
    return _account_all(_open(), at)


def settle(run: Run, now: datetime | None = None) -> None:
    """Write down for good what the run used: it is about to be purged."""
    at = now or datetime.now(UTC)
    for attempt in _open().filter(run=run):
        account(attempt, at, is_final=True)


def account(attempt: Attempt, now: datetime, *, is_final: bool | None = None) -> None:
    """Write the attempt's rows anew. They become final by themselves once nothing more can change them."""
    leases = list(
        Lease.objects.filter(holder=attempt.run_id, attempt=attempt.number)
        .select_related("node")
        .order_by("pk")
    )
    used = used_by(attempt, leases, now)
    settled = _is_settled(attempt, leases, now) if is_final is None else is_final
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
            gpu_seconds=part.gpu_seconds,
            node_seconds=part.node_seconds,
            energy_j=part.energy_j,
            is_final=settled,
        )
        for month, part in used.items()
    ]
    before = UsageEntry.objects.filter(
        workspace_id=run.workspace_id, run_number=run.number, attempt=attempt.number
    )
    with transaction.atomic():
        before.exclude(month__in=used).delete()
        UsageEntry.objects.bulk_create(
            rows,
            update_conflicts=True,
            update_fields=COUNTED,
            unique_fields=["workspace", "run_number", "attempt", "month"],
        )


def used_by(attempt: Attempt, leases: Iterable[Lease], now: datetime) -> dict[date, Used]:
    """Month -> what its leases are; an attempt that never held anything has one empty month."""
    curves = Curves(attempt)
    found: dict[date, Used] = {month_of(attempt.created_at): Used()}
    for lease in leases:
        end = max(lease.created_at, lease.released_at or now)
        measured = _measured(curves, lease, end)
        for month, begin_s, end_s in split(lease.created_at, end):
            part = found.setdefault(month, Used())
            part.node_seconds += end_s - begin_s
            part.gpu_seconds += (end_s - begin_s) * len(lease.gpus)
            for joules in (energy_j(measured, gpu, begin_s, end_s) for gpu in lease.gpus):
                part.energy_j = joules if part.energy_j is None else part.energy_j + (joules or 0.0)
    return found


def energy_j(measured: NodeSeries | None, gpu: str, start: float, end: float) -> float | None:
    """Of one GPU between two moments (Unix seconds); None where its power was never measured in between."""
    curve: Curve | None = measured.gpus.get(gpu, {}).get(POWER) if measured else None
    if measured is None or curve is None:
        return None
    begins = measured.grid.times.astype(np.float64)
    seconds = np.clip(np.minimum(begins + measured.grid.step_s, end) - np.maximum(begins, start), 0.0, None)
    known = ~np.isnan(curve.mean) & (seconds > 0)
    return float(np.sum(curve.mean[known].astype(np.float64) * seconds[known])) if known.any() else None


def _measured(curves: Curves, lease: Lease, end: datetime) -> NodeSeries | None:
    if not lease.gpus:
        return None
    start_s, end_s = lease.created_at.timestamp(), end.timestamp()
    return curves.of(
        lease.node, lease.gpus, Wanted((POWER,), (), start_s, max(end_s, start_s + 1), MOST_POINTS)
    )


def _open() -> QuerySet[Attempt]:
    """Attempts whose rows are not final yet, the oldest first."""
    final = UsageEntry.objects.filter(run=OuterRef("run"), attempt=OuterRef("number"), is_final=True)
    found = Attempt.objects.filter(~Exists(final)).select_related("run__experiment", "run__created_by")
    return found.defer("plan", "placement", "cause", "run__preview").order_by("pk")


def _account_all(attempts: QuerySet[Attempt], now: datetime) -> int:
    counted, after = 0, 0
    while some := list(attempts.filter(pk__gt=after)[:AT_ONCE]):
        for attempt in some:
            try:
                account(attempt, now)
                counted += 1
            except Exception:
                log.exception(
                    "What attempt %s of run %s used could not be counted", attempt.number, attempt.run_id
                )
        after = some[-1].pk
    return counted


def _is_settled(attempt: Attempt, leases: Iterable[Lease], now: datetime) -> bool:
    """Whether nothing more can change: all is released, and the curves are kept, or nobody waits for them any
    more."""
    held = list(leases)
    if attempt.ended_at is None or any(lease.released_at is None for lease in held):
        return False
    nodes = {lease.node.name for lease in held if lease.gpus}
    if attempt.ended_at < now - 2 * NOT_WAITED_FOR or not nodes:
        return True
    kept = KeptSeries.objects.filter(holder=attempt.run_id, attempt=attempt.number, node_name__in=nodes)
    return len(set(kept.values_list("node_name", flat=True))) == len(nodes)
