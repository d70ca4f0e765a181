"""What each tab of a run's page shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from jobs.models import Artifact, Attempt, Member, Run
from jobs.states import FINAL
from jobs.views import devices, lanes, planned
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.printing import show, shown_argv


@dataclass(frozen=True)
class Tab:
    word: str
    context: Callable[[Run, int, HttpRequest], dict[str, Any]]


@dataclass(frozen=True)
class ShownTab:
    name: str
    word: str
    count: int | None


def shown(run: Run, attempt: int) -> list[ShownTab]:
    counts = {
        "members": Member.objects.filter(attempt__run=run, attempt__number=attempt).count(),
        "outputs": Artifact.objects.filter(run=run, attempt=attempt).count(),
    }
    return [ShownTab(name, tab.word, counts.get(name)) for name, tab in TABS.items()]


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
        "rows": [(row, shown_argv(row.process)) for row in planned.rows(plan)],
        "differences": planned.differences(preview, plan) if preview and stored else (),
        "printed": show(plan),
    }


def _outputs(run: Run, attempt: int, _: HttpRequest) -> dict[str, Any]:
    artifacts = list(Artifact.objects.filter(run=run, attempt=attempt))
    try:
        register = reverse("register-form")
    except NoReverseMatch:
        register = ""
    return {
        "artifacts": artifacts,
        "total_bytes": sum(artifact.size_bytes for artifact in artifacts),
        "register_url": register,
        "is_final": run.state in FINAL,
    }


def _events(run: Run, _: int, __: HttpRequest) -> dict[str, Any]:
    return {"events": run.events.all()}


def _spec(run: Run, _: int, __: HttpRequest) -> dict[str, Any]:
    return {"spec": json.dumps(run.spec, indent=2, ensure_ascii=False)}


def _members(run: Run, attempt: int) -> list[Member]:
    return list(Member.objects.filter(attempt__run=run, attempt__number=attempt).select_related("node"))


TABS: dict[str, Tab] = {
    "logs": Tab("Logs", _logs),
    "gpus": Tab("GPUs", devices.context),
    "members": Tab("Members", _member_rows),
    "plan": Tab("Plan", _plan),
    "outputs": Tab("Outputs", _outputs),
    "events": Tab("Events", _events),
    "spec": Tab("Spec", _spec),
}
