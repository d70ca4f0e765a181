"""The usage page: a month or all time, by experiment, person, cluster and run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from django.db.models import QuerySet
from django.http import Http404, HttpResponse

from jobs.views.partials import render_part
from tracking.models import UsageEntry
from tracking.usage import usage_report
from tracking.usage.months import add_months, month_of, parse_month
from tracking.usage.table import csv_text
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

ALL = "all"
TABLES = ("experiment", "user", "cluster", "run")
MAX_LINES = 20
MAX_MONTHS = 12


@dataclass(frozen=True)
class MonthBar:
    """A month of the chart; `share` is the percentage of the highest month, 0 to 100."""

    month: date
    name: str
    value: float
    share: float
    is_chosen: bool


@dataclass(frozen=True)
class MonthChart:
    """`unit` is GPU-hours, or node-hours if no run had a GPU."""

    unit: str
    bars: tuple[MonthBar, ...]


@dataclass(frozen=True)
class UsageTable:
    by: str
    word: str
    lines: tuple[usage_report.UsageLine, ...]
    more: int


@needs(Role.VIEWER)
def usage(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.principal.workspace
    now = month_of(datetime.now(UTC))
    selected, rows = _selected_entries(request, now)
    used_months = usage_report.entries(workspace).values_list("month", flat=True).distinct()
    months = sorted({now, *used_months}, reverse=True)
    context = {
        "chosen": selected,
        "months": [(f"{month:%Y-%m}", f"{month:%B %Y}") for month in months],
        "total": usage_report.total(rows),
        "chart": chart(workspace, now, selected),
        "tables": [_table(rows, by) for by in TABLES],
    }
    return render_part(request, "tracking/usage/usage.html", "tracking/usage/_usage.html", context)


@needs(Role.VIEWER)
def usage_csv(request: WorkspaceRequest) -> HttpResponse:
    by = request.GET.get("by", "user")
    if by not in usage_report.BY:
        raise Http404
    selected, rows = _selected_entries(request, month_of(datetime.now(UTC)))
    name = f"usage-{by}-{selected}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return HttpResponse(
        csv_text(by, usage_report.usage_lines(rows, by)),
        content_type="text/csv; charset=utf-8",
        headers=headers,
    )


def chart(workspace: Workspace, now: date, selected: str) -> MonthChart:
    """Returns the chart of the last MAX_MONTHS months."""
    first = add_months(now, 1 - MAX_MONTHS)
    by_month = {
        line.name: line
        for line in usage_report.usage_lines(usage_report.entries(workspace, first, now), "month")
    }
    names = [f"{add_months(first, place):%Y-%m}" for place in range(MAX_MONTHS)]
    hours = [by_month[name].gpu_hours if name in by_month else 0.0 for name in names]
    # Workspaces without GPUs are charted by node-hours.
    has_gpus = any(hours)
    if not has_gpus:
        hours = [by_month[name].node_hours if name in by_month else 0.0 for name in names]
    maximum = max(hours) or 1.0
    return MonthChart(
        "GPU-hours" if has_gpus else "node-hours",
        tuple(
            MonthBar(add_months(first, place), name, value, 100 * value / maximum, name == selected)
            for place, (name, value) in enumerate(zip(names, hours, strict=True))
        ),
    )


def _selected_entries(request: WorkspaceRequest, now: date) -> tuple[str, QuerySet[UsageEntry]]:
    """Returns the selected month (`?month=2026-07`, `all`, or the current month) and its entries."""
    text = request.GET.get("month", "")
    if text == ALL:
        return ALL, usage_report.entries(request.principal.workspace)
    month = parse_month(text) or now
    return f"{month:%Y-%m}", usage_report.entries(request.principal.workspace, month, month)


def _table(rows: QuerySet[UsageEntry], by: str) -> UsageTable:
    if by == "run":
        lines, count = usage_report.largest_runs(rows, MAX_LINES)
    else:
        lines = usage_report.usage_lines(rows, by)
        count = len(lines)
    return UsageTable(by, usage_report.BY[by][0], tuple(lines[:MAX_LINES]), max(0, count - MAX_LINES))
