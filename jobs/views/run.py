"""The page of one run: header, cause, tabs. Each part is also served alone, for htmx."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import patch_cache_control

from jobs.models import Run
from jobs.views import lanes, tabs
from jobs.views.cause import shown_cause
from jobs.views.partials import render_part
from jobs.views.run_lookup import run_numbered, run_with_id
from jobs.views.timeline import Event, Phase, phases, stretch
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@needs(Role.VIEWER)
def run(request: WorkspaceRequest, number: int, tab: str = "") -> HttpResponse:
    found = run_numbered(request.principal, number)
    names = tabs.names(found)
    tab = tab or names[0]
    if tab not in tabs.TABS or (tab not in names and found.kind != "job"):
        raise Http404
    attempt = lanes.attempt_asked(found, request.GET.get("attempt", ""))
    context = {
        "run": found,
        "tab": tab,
        "attempt": attempt,
        "may_act": request.principal.may(Role.CONTRIBUTOR),
    }
    context |= tabs.TABS[tab].context(found, attempt, request)
    if "HX-Request" not in request.headers:
        context |= header_context(found) | {"tabs": tabs.shown(found, attempt), "shown_tab": tabs.TABS[tab]}
    return render_part(request, "jobs/run.html", f"jobs/_tab_{tab}.html", context)


@needs(Role.VIEWER)
def header(request: WorkspaceRequest, number: int) -> HttpResponse:
    found = run_numbered(request.principal, number)
    context = {"run": found, "may_act": request.principal.may(Role.CONTRIBUTOR)} | header_context(found)
    context["tabs"] = tabs.shown(found, found.attempt)
    response = render(request, "jobs/_run_header_alone.html", context)
    patch_cache_control(response, no_store=True)
    return response


@needs(Role.VIEWER)
def by_id(request: WorkspaceRequest, run_id: str) -> HttpResponse:
    return redirect("run", run_with_id(request.principal, run_id).number)


def phases_of(run: Run, events: Iterable[Event], now: datetime) -> tuple[Phase, ...]:
    if run.kind == "external":
        return stretch(run.started_at or run.created_at, run.finished_at, now)
    return phases(run.created_at, events, now)


def header_context(run: Run) -> dict[str, Any]:
    """The timeline, why the run failed, and what its nodes warn of."""
    return {
        "phases": phases_of(run, run.events.exclude(to_state=""), timezone.now()),
        "cause": shown_cause(run),
        "warnings": next(
            iter(run.attempts.filter(number=run.attempt).values_list("warnings", flat=True)), []
        ),
    }
