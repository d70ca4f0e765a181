"""The page of one run with header, cause and tabs; htmx requests the header and the tabs separately."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import patch_cache_control

from jobs.models import Run
from jobs.queues import standings
from jobs.recovery.outside_cancel import pending_cancels
from jobs.retention.removals import removal_sentence
from jobs.states import DataKind, RunKind
from jobs.views import lanes, tabs
from jobs.views.cause import cause_view
from jobs.views.partials import render_part
from jobs.views.run_lookup import run_numbered, run_with_id
from jobs.views.timeline import StateSpan, TimelineEvent, phases, stretch
from workspaces.access import Principal, WorkspaceRequest, needs
from workspaces.states import Role

# Of which kind the data is that a tab shows.
REMOVABLE = {
    "logs": DataKind.LOGS,
    "outputs": DataKind.OUTPUTS,
    "media": DataKind.OUTPUTS,
    "checkpoints": DataKind.OUTPUTS,
    "metrics": DataKind.METRICS,
    "gpus": DataKind.TELEMETRY,
}


@needs(Role.VIEWER)
def run(request: WorkspaceRequest, number: int, tab: str = "") -> HttpResponse:
    row = run_numbered(request.principal, number)
    names = tabs.tab_names(row)
    # Links to a line of a log name no tab.
    tab = tab or ("logs" if "log" in request.GET else tabs.default_tab(row))
    # A tab that a job does not list yet, such as metrics before the first value, can be opened by its URL. An
    # external run never gets the tabs of jobs.
    if tab not in tabs.TABS or (tab not in names and row.kind != RunKind.JOB):
        raise Http404
    attempt = lanes.requested_attempt(row, request.GET.get("attempt", ""))
    context = {
        "run": row,
        "tab": tab,
        "attempt": attempt,
        "may_act": request.principal.may(Role.CONTRIBUTOR),
    }
    if tab in REMOVABLE:
        context["removed"] = removal_sentence(row, REMOVABLE[tab])
    context |= tabs.TABS[tab].context(row, attempt, request)
    # The header costs several queries and is not part of the response to htmx.
    if "HX-Request" not in request.headers:
        context |= header_context(row, request.principal) | {
            "tabs": tabs.visible_tabs(row, attempt),
            "shown_tab": tabs.TABS[tab],
        }
    return render_part(request, "jobs/run.html", f"jobs/_tab_{tab}.html", context)


@needs(Role.VIEWER)
def run_header(request: WorkspaceRequest, number: int) -> HttpResponse:
    row = run_numbered(request.principal, number)
    context = {"run": row, "may_act": request.principal.may(Role.CONTRIBUTOR)} | header_context(
        row, request.principal
    )
    context["tabs"] = tabs.visible_tabs(row, row.attempt)
    response = render(request, "jobs/_run_header_alone.html", context)
    patch_cache_control(response, no_store=True)
    return response


@needs(Role.VIEWER)
def by_id(request: WorkspaceRequest, run_id: str) -> HttpResponse:
    return redirect("run", run_with_id(request.principal, run_id).number)


def phases_of(run: Run, events: Iterable[TimelineEvent], now: datetime) -> tuple[StateSpan, ...]:
    if run.kind == RunKind.EXTERNAL:
        return stretch(run.started_at or run.created_at, run.finished_at, now)
    return phases(run.created_at, events, now)


def header_context(run: Run, principal: Principal) -> dict[str, Any]:
    """Returns the template context of the header: timeline, cause of a failure, and warnings of the latest
    attempt, also that it could not be canceled everywhere yet."""
    return {
        "phases": phases_of(run, run.events.exclude(to_state=""), timezone.now()),
        "cause": cause_view(run, may_change=principal.may(Role.CONTRIBUTOR)),
        "queue": standings.standing_of(run),
        "warnings": [
            *next(iter(run.attempts.filter(number=run.attempt).values_list("warnings", flat=True)), []),
            *pending_cancels(run),
        ],
    }
