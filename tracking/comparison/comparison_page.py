"""The page that compares runs. The URL contains its whole state, so a link shows others the same page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render

from jobs.models import Run
from tracking.comparison import relations, tables
from tracking.comparison.differences.pages import KINDS
from tracking.comparison.figures import STATISTICS, metric_figures
from tracking.comparison.selected_runs import (
    ComparedRun,
    RunSelection,
    compared_runs,
    parse_names,
    select_runs,
)
from tracking.curves.curve_list import list_curves
from tracking.curves.run_selection import MAX_RUNS, load_named_runs
from tracking.curves.spread import Groups, group_runs_by
from tracking.media.media_grid import media_grid
from tracking.panels.layout_store import page_panels
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

MAX_CANDIDATES = 12


@dataclass(frozen=True)
class PageSection:
    """A section of the page. `is_usual`: open by default. `kind`: the kind of difference that the browser
    loads when the section is opened; else empty."""

    name: str
    word: str
    is_usual: bool
    is_open: bool = True
    kind: str = ""


SECTIONS = (
    PageSection("curves", "Curves", is_usual=True),
    PageSection("params", "Parameters", is_usual=True),
    PageSection("metrics", "Metrics", is_usual=True),
    PageSection("media", "Media", is_usual=True),
    PageSection("attributes", "Attributes and tags", is_usual=False),
    PageSection("relations", "Parallel coordinates and scatter", is_usual=False),
)


@needs(Role.VIEWER)
def page(request: WorkspaceRequest) -> HttpResponse:
    query = request.GET
    notes: list[str] = []
    try:
        names, removed = parse_names(query.get("runs", "")), parse_names(query.get("without", ""))
    except SpecError as error:
        return render(
            request, "tracking/compare.html", {"notes": [f"{error.field} {error.message}."]}, status=400
        )
    choice = select_runs(request.principal.workspace, names, removed)
    by, groups = query.get("group", ""), None
    try:
        groups = group_runs_by(choice.runs, by) if by and choice.runs else None
    except SpecError as error:
        notes.append(f"{error.field} {error.message}.")
    context = _context(choice, by, groups, query.get("sections")) if choice.runs else {}
    return render(
        request,
        "tracking/compare.html",
        {
            "notes": [*choice.notes, *notes],
            "offered": choice.offered,
            "most": MAX_RUNS,
            "only": query.get("only") == "1",
            "statistic": query["stat"] if query.get("stat") in STATISTICS else STATISTICS[0],
            "statistics": STATISTICS,
            "may_act": request.principal.may(Role.CONTRIBUTOR),
            **context,
        },
    )


@needs(Role.VIEWER)
def candidates_part(request: WorkspaceRequest) -> HttpResponse:
    """Renders runs that can be added, by name, number or experiment; without a text the pinned and newest
    ones."""
    workspace = request.principal.workspace
    try:
        current = parse_names(request.GET.get("runs", ""))
    except SpecError:
        # The page itself reports invalid names; here they must not hide the runs that can be added.
        current = []
    # PostgreSQL refuses text with NUL.
    text = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    selected = [run.pk for run in load_named_runs(workspace, current)]
    others = Run.objects.for_workspace(workspace).listed().exclude(pk__in=selected)
    newest = (
        others.matching(workspace, text=text)
        .select_related("experiment")
        .defer("preview", "spec")
        .order_by("-created_at")
    )
    # Two queries: one order by both would sort all runs of the workspace.
    pinned = [] if text else list(newest.filter(pinned=True)[:MAX_CANDIDATES])
    rest = newest if text else newest.filter(pinned=False)
    runs = [*pinned, *rest[: MAX_CANDIDATES - len(pinned)]]
    return render(
        request,
        "tracking/_compare_candidates.html",
        {
            "candidates": [(run, _joined([*current, str(run.number)])) for run in runs],
            "text": text,
            "is_full": len(current) >= MAX_RUNS,
            "most": MAX_RUNS,
        },
    )


def _context(choice: RunSelection, by: str, groups: Groups | None, opened: str | None) -> dict[str, object]:
    compared = compared_runs(choice, groups)
    runs = choice.runs
    names = [str(run.number) for run in runs]
    address = {"runs": _joined(names), **({"group": by} if groups is not None else {})}
    params, figures_rows = tables.params_table(runs), metric_figures(runs)
    return {
        "runs": [(item, _removal_params(item, compared)) for item in compared],
        "curves": {
            "runs": list_curves(runs),
            **({"groups": relations.group_subjects(by, groups)} if groups is not None else {}),
        },
        "listing": f"/api/v1/compare/metrics/?{urlencode({'runs': _joined(names)}, safe=',')}",
        "series": f"/api/v1/compare/series/?{urlencode(address, safe=',')}",
        "csv": "",
        # The panels of the first run's experiment serve all runs.
        "panels": page_panels(runs[0].experiment),
        "grouping": relations.group_options(runs, params, by if groups is not None else "")
        if len(runs) > 1
        else (),
        "params": params,
        "tags": tables.tags_table(runs),
        "attributes": tables.attributes_table(runs),
        "figures": figures_rows,
        "has_curves": bool(figures_rows),
        "media": media_grid([(run, run.attempt) for run in runs]),
        "relations": relations.plot_data(compared, params, figures_rows),
        "sections": _sections(opened),
        "differences": _differences(opened),
        "names": _joined(names),
    }


def _sections(opened: str | None) -> dict[str, PageSection]:
    # Without the parameter each section has its default; an empty one closes all.
    names = None if opened is None else set(opened.split(","))
    return {
        section.name: replace(section, is_open=section.is_usual if names is None else section.name in names)
        for section in SECTIONS
    }


def _differences(opened: str | None) -> list[PageSection]:
    names = set() if opened is None else set(opened.split(","))
    return [
        PageSection(kind, kinds.word, is_usual=False, is_open=kind in names, kind=kind)
        for kind, kinds in KINDS.items()
    ]


def _removal_params(item: ComparedRun, compared: Sequence[ComparedRun]) -> Mapping[str, str]:
    """Returns the query parameters that remove this run: `without` for a reference, `runs` for a selected
    run."""
    if item.is_reference:
        return {"without": str(item.run.number)}
    return {
        "runs": _joined(
            str(other.run.number) for other in compared if not other.is_reference and other is not item
        )
    }


def _joined(names: Any) -> str:
    return ",".join(names)
