"""What each tab of a run's page shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from jobs import outputs
from jobs.models import Attempt, Member, Run
from jobs.states import FINAL
from jobs.views import devices, lanes, plan_comparison
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.printing import show, shown_argv


@dataclass(frozen=True)
class Tab:
    """`styles`, `scripts`: static files of this tab. `stands`: its script keeps it up to date, so that it is
    not fetched anew.

    `shows`: whether a run has this tab at all.
    """

    word: str
    context: Callable[[Run, int, HttpRequest], dict[str, Any]]
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    stands: bool = False
    shows: Callable[[Run], bool] = lambda _: True


@dataclass(frozen=True)
class ShownTab:
    name: str
    word: str
    count: int | None


def shown(run: Run, attempt: int) -> list[ShownTab]:
    counts = {
        "members": Member.objects.filter(attempt__run=run, attempt__number=attempt).count(),
        "outputs": outputs.for_attempt(run, attempt).count(),
    }
    return [ShownTab(name, TABS[name].word, counts.get(name)) for name in names(run)]


def names(run: Run) -> list[str]:
    """The tabs that this run has; the first is shown to begin with."""
    return [name for name, tab in TABS.items() if tab.shows(run)]


def register(name: str, tab: Tab, *, after: str) -> None:
    """A tab of a higher floor, which it registers when it is ready; its template is jobs/_tab_NAME.html."""
    listed = [item for item in TABS.items() if item[0] != name]
    place = 1 + [known for known, _ in listed].index(after)
    TABS.clear()
    TABS.update([*listed[:place], (name, tab), *listed[place:]])


def _logs(run: Run, attempt: int, request: HttpRequest) -> dict[str, Any]:
    found = lanes.shown(run, attempt, request.GET.get("log", ""))
    return {
        "found": found,
        "lanes": found.ranks,
        "files": found.files,
        "chosen_log": found.chosen_log,
        "is_final": run.state in FINAL,
    }


def _member_rows(run: Run, attempt: int, _: HttpRequest) -> dict[str, Any]:
    return {"members": _members(run, attempt), "is_final": run.state in FINAL}


def _plan(run: Run, attempt: int, _: HttpRequest) -> dict[str, Any]:
    stored = Attempt.objects.filter(run=run, number=attempt).values_list("plan", flat=True).first()
    preview = LaunchPlan.from_json(run.preview) if run.preview else None
    plan = LaunchPlan.from_json(stored) if stored else preview
    if plan is None:
        return {"plan": None}
    return {
        "plan": plan,
        "ran": bool(stored),
        "rows": [(row, shown_argv(row.process)) for row in plan_comparison.rows(plan)],
        "differences": plan_comparison.differences(preview, plan) if preview and stored else (),
        "printed": show(plan),
    }


def _events(run: Run, _: int, __: HttpRequest) -> dict[str, Any]:
    return {"events": run.events.all()}


def _spec(run: Run, _: int, __: HttpRequest) -> dict[str, Any]:
    return {"spec": json.dumps(run.spec, indent=2, ensure_ascii=False)}


def _members(run: Run, attempt: int) -> list[Member]:
    return list(Member.objects.filter(attempt__run=run, attempt__number=attempt).select_related("node"))


def _of_jobs(run: Run) -> bool:
    """A run from elsewhere has neither processes nor a plan that we know of."""
    return run.kind == "job"


TABS: dict[str, Tab] = {
    "logs": Tab("Logs", _logs, ("css/log.css",), ("js/log-view.js",), shows=_of_jobs),
    "gpus": Tab("GPUs", devices.context, ("css/charts.css",), ("js/charts/mount.js",), shows=_of_jobs),
    "members": Tab("Members", _member_rows, shows=_of_jobs),
    "plan": Tab("Plan", _plan, shows=_of_jobs),
    "events": Tab("Events", _events),
    "spec": Tab("Spec", _spec, stands=True, shows=_of_jobs),
}
