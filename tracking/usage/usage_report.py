"""Totals of usage by run, person, experiment, month or cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce

from tracking.models import UsageEntry
from workspaces.models import Workspace

HOUR_S = 3600.0
BATCH_SIZE = 500
# The name of a run that still exists. Deleted runs are counted, but their names are not shown.
_NAME = Case(When(run__deleted_at=None, run__isnull=False, then=F("run__display_name")), default=Value(""))
# Heading and grouping expressions of each kind of total.
BY: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "user": ("Person", {"of": F("user_name")}),
    # The current name of the experiment, or the stored one after the run was purged.
    "experiment": ("Experiment", {"of": Coalesce("run__experiment__name", "experiment_name")}),
    "run": ("Run", {"of": F("run_number"), "title": _NAME}),
    "month": ("Month", {"of": F("month")}),
    "cluster": ("Cluster", {"of": F("cluster_name")}),
}


@dataclass(frozen=True)
class UsageLine:
    """One total. `energy_wh` covers `measured_gpu_hours`; None without measurements. `title` is the name of a
    run."""

    name: str
    gpu_hours: float
    node_hours: float
    energy_wh: float | None
    measured_gpu_hours: float
    runs: int
    title: str = ""


def hours_by_run(run_ids: Collection[str]) -> dict[str, tuple[float, float | None]]:
    """Returns (GPU-hours, energy in Wh or None) by run id; runs without entries are absent."""
    ids = list(run_ids)
    by_run: dict[str, tuple[float, float | None]] = {}
    for start in range(0, len(ids), BATCH_SIZE):
        rows = UsageEntry.objects.filter(run__in=ids[start : start + BATCH_SIZE]).order_by()
        for run, gpu_s, joules in rows.values_list("run").annotate(Sum("gpu_seconds"), Sum("energy_j")):
            by_run[run] = (gpu_s / HOUR_S, None if joules is None else joules / HOUR_S)
    return by_run


def entries(
    workspace: Workspace, first: date | None = None, last: date | None = None
) -> QuerySet[UsageEntry]:
    """Returns the entries from month `first` to month `last`, both included."""
    rows = UsageEntry.objects.filter(workspace=workspace)
    if first is not None:
        rows = rows.filter(month__gte=first)
    return rows if last is None else rows.filter(month__lte=last)


def usage_lines(entries: QuerySet[UsageEntry], by: str) -> list[UsageLine]:
    """Returns the totals by a key of BY: months in order, everything else by usage, the largest first."""
    names = BY[by][1]
    rows = entries.order_by().annotate(**names).values(*names).annotate(**_sums())
    lines = [_line(row) for row in rows]
    if by == "month":
        return sorted(lines, key=lambda line: line.name)
    return sorted(lines, key=lambda line: (-line.gpu_hours, -line.node_hours, line.name))


def largest_runs(entries: QuerySet[UsageEntry], limit: int) -> tuple[list[UsageLine], int]:
    """Returns the totals of the `limit` runs with most usage, in the order of `usage_lines`, and the number
    of runs. The database sorts them: there may be a million."""
    rows = entries.order_by().annotate(of=F("run_number")).values("of")
    # Each row is of one run: to count them would sort all entries.
    sums = {name: total for name, total in _sums().items() if name != "runs"}
    largest = (F("gpu_s").desc(), F("node_s").desc(), F("of").asc())
    first = list(rows.annotate(**sums).order_by(*largest)[:limit])
    # Names of these alone: otherwise each entry would be joined with its run.
    named = entries.filter(run_number__in=[row["of"] for row in first]).annotate(title=_NAME)
    titles = dict(named.values_list("run_number", "title"))
    lines = [_line({**row, "title": titles[row["of"]], "runs": 1}) for row in first]
    return lines, rows.distinct().count()


def total(entries: QuerySet[UsageEntry]) -> UsageLine:
    return _line({"of": "", **entries.aggregate(**_sums())})


def _sums() -> dict[str, object]:
    return {
        "gpu_s": Sum("gpu_seconds"),
        "node_s": Sum("node_seconds"),
        "joules": Sum("energy_j"),
        "measured_s": Sum("gpu_seconds", filter=Q(energy_j__isnull=False)),
        "runs": Count("run_number", distinct=True),
    }


def _line(row: Mapping[str, Any]) -> UsageLine:
    name = row["of"]
    return UsageLine(
        name=name.strftime("%Y-%m") if isinstance(name, date) else str(name),
        title=row.get("title", ""),
        gpu_hours=(row["gpu_s"] or 0.0) / HOUR_S,
        node_hours=(row["node_s"] or 0.0) / HOUR_S,
        energy_wh=None if row["joules"] is None else row["joules"] / HOUR_S,
        measured_gpu_hours=(row["measured_s"] or 0.0) / HOUR_S,
        runs=row["runs"],
    )
