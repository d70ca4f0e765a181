"""Differences between runs, one kind at a time: parts of the comparison page, or pages of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.http import Http404, HttpResponse
from django.shortcuts import render

from jobs.models import Run, RunTag
from jobs.views.partials import render_part
from tracking.comparison.differences import environment, gpus, plans, sources
from tracking.comparison.differences.sheet import facts_table
from tracking.comparison.differences.sources import SourceDifference
from tracking.comparison.selected_runs import ComparedRun
from tracking.comparison.tables import ComparisonTable
from tracking.curves.run_selection import load_named_runs, parse_run_names
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

MAX_SOURCE_S = 8.0
# Tags in which MLflow's client logs the source of an external run.
COMMIT = {
    "mlflow.source.git.commit": "commit",
    "mlflow.source.git.branch": "branch",
    "mlflow.source.git.repoURL": "repository",
    "mlflow.source.name": "script",
}


@dataclass(frozen=True)
class DifferenceKind:
    word: str
    context: Callable[[Sequence[Run]], dict[str, object]]


@needs(Role.VIEWER)
def difference(request: WorkspaceRequest, kind: str) -> HttpResponse:
    if kind not in KINDS:
        raise Http404
    try:
        runs = load_named_runs(request.principal.workspace, parse_run_names(request.GET.get("runs", "")))
    except SpecError as error:
        context: dict[str, object] = {"word": KINDS[kind].word, "problem": f"{error.field} {error.message}."}
        return render(request, "tracking/differences/page.html", context, status=400)
    compared = [ComparedRun(run, place, is_reference=False) for place, run in enumerate(runs)]
    base = request.GET.get("base", "")
    # The base comes first; every run keeps its colour.
    ordered = sorted(compared, key=lambda item: base not in (str(item.run.number), item.run.pk))
    context = {
        "kind": kind,
        "word": KINDS[kind].word,
        "part": f"tracking/differences/_{kind}.html",
        "names": ",".join(str(run.number) for run in runs),
        "choices": compared,
        "base": ordered[0].run if ordered else None,
        "runs": [(item, None) for item in ordered],
    }
    if len(compared) > 1:
        context |= KINDS[kind].context([item.run for item in ordered])
    return render_part(
        request,
        "tracking/differences/page.html",
        "tracking/differences/_part.html",
        context,
    )


def _source(runs: Sequence[Run]) -> dict[str, object]:
    deadline = time.monotonic() + MAX_SOURCE_S
    base, others = runs[0], runs[1:]
    beside = [(run, _source_difference(base, run, deadline)) for run in others]
    return {
        "beside": beside,
        "commits": _commits(runs),
        "without": [run for run in runs if not _snapshot(run)],
    }


def _source_difference(base: Run, run: Run, deadline: float) -> SourceDifference | None:
    """Returns the difference of the runs' snapshots, or None if one of them has no snapshot."""
    base_source, run_source = _snapshot(base), _snapshot(run)
    if not base_source or not run_source:
        return None
    # One slow pair must not use up the time of the others, and all pairs together have a limit as well.
    return sources.compare_snapshots(
        base_source, run_source, deadline=min(deadline, time.monotonic() + sources.MAX_COMPARE_S)
    )


def _snapshot(run: Run) -> str:
    source = run.spec.get("source") or {}
    return str(source.get("id", "")) if source.get("type") == "snapshot" else ""


def _commits(runs: Sequence[Run]) -> ComparisonTable:
    facts: dict[str, dict[str, str]] = {}
    for run, key, value in RunTag.objects.filter(run__in=runs, key__in=COMMIT).values_list(
        "run", "key", "value"
    ):
        facts.setdefault(run, {})[COMMIT[key]] = value
    return facts_table(runs, facts, tuple(COMMIT.values()))


def _environment(runs: Sequence[Run]) -> dict[str, object]:
    return {"software": environment.compare_software(runs)}


def _plan(runs: Sequence[Run]) -> dict[str, object]:
    return {"plans": plans.compare_plans(runs)}


def _gpus(runs: Sequence[Run]) -> dict[str, object]:
    return {"table": gpus.compare_gpus(runs)}


KINDS = {
    "source": DifferenceKind("Source", _source),
    "environment": DifferenceKind("Environment", _environment),
    "plan": DifferenceKind("Plan", _plan),
    "gpus": DifferenceKind("GPUs", _gpus),
}
