"""The tabs of a run's page, and the template context of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest

from jobs import outputs
from jobs.models import Attempt, Member, Run
from jobs.states import FINAL, RunKind
from jobs.views import devices, lanes, plan_comparison
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.printing import display_argv, show


@dataclass(frozen=True)
class Tab:
    """A tab of a run's page.

    `context` returns its template context. `styles`, `scripts`: static files that the tab needs. `stands`:
    its content needs no refresh by htmx. `shows`: whether a run has this tab. `is_detail`: it is listed in
    the menu behind the others."""

    word: str
    context: Callable[[Run, int, HttpRequest], dict[str, object]]
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    stands: bool = False
    is_detail: bool = False
    shows: Callable[[Run], bool] = lambda _: True


@dataclass(frozen=True)
class TabView:
    name: str
    word: str
    count: int | None
    is_detail: bool


def visible_tabs(run: Run, attempt: int) -> list[TabView]:
    counts = {
        "members": Member.objects.filter(attempt__run=run, attempt__number=attempt).count(),
        "outputs": outputs.for_attempt(run, attempt).count()
        + outputs.stored_for_attempt(run, attempt).count(),
    }
    return [TabView(name, TABS[name].word, counts.get(name), TABS[name].is_detail) for name in tab_names(run)]


def tab_names(run: Run) -> list[str]:
    """Returns the names of the tabs of this run."""
    return [name for name, tab in TABS.items() if tab.shows(run)]


def default_tab(run: Run) -> str:
    """Returns the tab that the run's page opens with: while a job goes on, its logs."""
    names = tab_names(run)
    return "logs" if "logs" in names and run.state not in FINAL else names[0]


def register(name: str, tab: Tab, *, after: str) -> None:
    """Adds the tab `name` behind the tab `after`, or as the first one if that is "", for apps that depend on
    this one. Its template is jobs/_tab_NAME.html."""
    # A repeated registration replaces the tab.
    listed = [item for item in TABS.items() if item[0] != name]
    place = 1 + [existing for existing, _ in listed].index(after) if after else 0
    # The dictionary is changed in place, because other modules have imported it by name.
    TABS.clear()
    TABS.update([*listed[:place], (name, tab), *listed[place:]])


def _logs(run: Run, attempt: int, request: HttpRequest) -> dict[str, object]:
    logs = lanes.logs_view(run, attempt, request.GET.get("log", ""))
    return {
        "log_view": logs,
        "lanes": logs.ranks,
        "files": logs.files,
        "chosen_log": logs.chosen_log,
        "is_final": run.state in FINAL,
    }


def _member_rows(run: Run, attempt: int, _: HttpRequest) -> dict[str, object]:
    return {"members": _members(run, attempt), "is_final": run.state in FINAL}


def _plan(run: Run, attempt: int, _: HttpRequest) -> dict[str, object]:
    stored = Attempt.objects.filter(run=run, number=attempt).values_list("plan", flat=True).first()
    preview = LaunchPlan.from_json(run.preview) if run.preview else None
    plan = LaunchPlan.from_json(stored) if stored else preview
    if plan is None:
        return {"plan": None}
    changes = plan_comparison.differences(preview, plan) if preview and stored else ()
    return {
        "plan": plan,
        "ran": bool(stored),
        "rows": [(row, display_argv(row.process)) for row in plan_comparison.rows(plan)],
        "differences": [change for change in changes if not change.expected],
        "filled_in": [change for change in changes if change.expected],
        "printed": show(plan),
    }


def _events(run: Run, _: int, __: HttpRequest) -> dict[str, object]:
    return {"events": run.events.all()}


def _spec(run: Run, _: int, __: HttpRequest) -> dict[str, object]:
    return {"spec": json.dumps(run.spec, indent=2, ensure_ascii=False)}


def _members(run: Run, attempt: int) -> list[Member]:
    return list(Member.objects.filter(attempt__run=run, attempt__number=attempt).select_related("node"))


def _of_jobs(run: Run) -> bool:
    """Returns whether the run is a job: TrainHub knows neither processes nor a plan of an external run."""
    return run.kind == RunKind.JOB


TABS: dict[str, Tab] = {
    "logs": Tab("Logs", _logs, ("css/log.css",), ("js/log-view.js",), shows=_of_jobs),
    "gpus": Tab("GPUs", devices.context, ("css/charts.css",), ("js/charts/mount.js",), shows=_of_jobs),
    "members": Tab("Ranks", _member_rows, is_detail=True, shows=_of_jobs),
    "plan": Tab("Plan", _plan, is_detail=True, shows=_of_jobs),
    "events": Tab("Events", _events),
    "spec": Tab("Spec", _spec, stands=True, is_detail=True, shows=_of_jobs),
}
