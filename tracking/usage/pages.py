"""What the workspace used: a month, or all of the time, by experiment, person and cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from django.db.models import QuerySet
from django.http import Http404, HttpResponse

from jobs.views.partials import render_part
from tracking.models import UsageEntry
from tracking.usage import usage_report
from tracking.usage.months import after, month_of, spelled
from tracking.usage.table import csv_text
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

ALL = "all"
SHOWN = ("experiment", "user", "cluster", "run")
MOST_LINES = 20
BARS = 12


@dataclass(frozen=True)
class Bar:
    """A month of the chart; `share` of the highest one, 0 to 100."""

    month: date
    name: str
    value: float
    share: float
    is_chosen: bool


@dataclass(frozen=True)
class Chart:
    """`unit`: GPU-hours, or node-hours where no run of the time had a GPU."""

    unit: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Table:
    by: str
    word: str
    lines: tuple[usage_report.Line, ...]
    more: int


@needs(Role.VIEWER)
def usage(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.principal.workspace
    now = month_of(datetime.now(UTC))
    asked, found = _asked(request, now)
    used = usage_report.entries(workspace).values_list("month", flat=True).distinct()
    months = sorted({now, *used}, reverse=True)
    context = {
        "chosen": asked,
        "months": [(f"{month:%Y-%m}", f"{month:%B %Y}") for month in months],
        "total": usage_report.total(found),
        "chart": chart(workspace, now, asked),
        "tables": [_table(found, by) for by in SHOWN],
    }
    return render_part(request, "tracking/usage/usage.html", "tracking/usage/_usage.html", context)


@needs(Role.VIEWER)
def download(request: WorkspaceRequest) -> HttpResponse:
    by = request.GET.get("by", "user")
    if by not in usage_report.BY:
        raise Http404
    asked, found = _asked(request, month_of(datetime.now(UTC)))
    name = f"usage-{by}-{asked}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return HttpResponse(
        csv_text(by, usage_report.lines(found, by)), content_type="text/csv; charset=utf-8", headers=headers
    )


def chart(workspace: Workspace, now: date, chosen: str) -> Chart:
    """The last twelve months."""
    first = after(now, 1 - BARS)
    by_month = {
        line.name: line for line in usage_report.lines(usage_report.entries(workspace, first, now), "month")
    }
    names = [f"{after(first, place):%Y-%m}" for place in range(BARS)]
    hours = [by_month[name].gpu_hours if name in by_month else 0.0 for name in names]
    has_gpus = any(hours)
    if not has_gpus:
        hours = [by_month[name].node_hours if name in by_month else 0.0 for name in names]
    most = max(hours) or 1.0
    return Chart(
        "GPU-hours" if has_gpus else "node-hours",
        tuple(
            Bar(after(first, place), name, value, 100 * value / most, name == chosen)
            for place, (name, value) in enumerate(zip(names, hours, strict=True))
        ),
    )


def _asked(request: WorkspaceRequest, now: date) -> tuple[str, QuerySet[UsageEntry]]:
    """`?month=2026-07`, or `all`; this month unless another one is named."""
    text = request.GET.get("month", "")
    if text == ALL:
        return ALL, usage_report.entries(request.principal.workspace)
    month = spelled(text) or now
    return f"{month:%Y-%m}", usage_report.entries(request.principal.workspace, month, month)


def _table(found: QuerySet[UsageEntry], by: str) -> Table:
    lines = usage_report.lines(found, by)
    return Table(by, usage_report.BY[by][0], tuple(lines[:MOST_LINES]), max(0, len(lines) - MOST_LINES))
