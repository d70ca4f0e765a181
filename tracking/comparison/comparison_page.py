"""Runs side by side. The address carries all that is shown: a link shows a colleague the same."""

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
from tracking.comparison.figures import STATISTICS, figures
from tracking.comparison.selected_runs import Choice, ShownRun, choose, placed, wanted_of
from tracking.curves.curve_list import listing
from tracking.curves.run_selection import MOST_RUNS, chosen
from tracking.curves.spread import Groups, groups_of
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

MOST_FOUND = 12


@dataclass(frozen=True)
class Section:
    """`is_usual`: open unless closed. `kind` of a difference, which is fetched when somebody opens it; else
    empty."""

    name: str
    word: str
    is_usual: bool
    is_open: bool = True
    kind: str = ""


SECTIONS = (
    Section("curves", "Curves", is_usual=True),
    Section("params", "Parameters", is_usual=True),
    Section("metrics", "Metrics", is_usual=True),
    Section("attributes", "Attributes and tags", is_usual=False),
    Section("relations", "Parallel coordinates and scatter", is_usual=False),
)


@needs(Role.VIEWER)
def page(request: WorkspaceRequest) -> HttpResponse:
    query = request.GET
    notes: list[str] = []
    try:
        wanted, without = wanted_of(query.get("runs", "")), wanted_of(query.get("without", ""))
    except SpecError as error:
        return render(
            request, "tracking/compare.html", {"notes": [f"{error.field} {error.message}."]}, status=400
        )
    choice = choose(request.principal.workspace, wanted, without)
    by, groups = query.get("group", ""), None
    try:
        groups = groups_of(choice.runs, by) if by and choice.runs else None
    except SpecError as error:
        notes.append(f"{error.field} {error.message}.")
    context = _context(choice, by, groups, query.get("sections")) if choice.runs else {}
    return render(
        request,
        "tracking/compare.html",
        {
            "notes": [*choice.notes, *notes],
            "offered": choice.offered,
            "most": MOST_RUNS,
            "only": query.get("only") == "1",
            "statistic": query["stat"] if query.get("stat") in STATISTICS else STATISTICS[0],
            "statistics": STATISTICS,
            **context,
        },
    )


@needs(Role.VIEWER)
def candidates(request: WorkspaceRequest) -> HttpResponse:
    """Runs that can be added: by name, number or experiment; without a text the pinned and the newest
    ones."""
    workspace = request.principal.workspace
    try:
        already = wanted_of(request.GET.get("runs", ""))
    except SpecError:
        already = []
    text = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    held = [run.pk for run in chosen(workspace, already)]
    found = Run.objects.of(workspace).listed().exclude(pk__in=held).matching(text=text)
    order = ("-created_at",) if text else ("-pinned", "-created_at")
    runs = list(found.select_related("experiment").defer("preview", "spec").order_by(*order)[:MOST_FOUND])
    return render(
        request,
        "tracking/_compare_candidates.html",
        {
            "found": [(run, _joined([*already, str(run.number)])) for run in runs],
            "text": text,
            "is_full": len(already) >= MOST_RUNS,
            "most": MOST_RUNS,
        },
    )


def _context(choice: Choice, by: str, groups: Groups | None, opened: str | None) -> dict[str, Any]:
    shown = placed(choice, groups)
    runs = choice.runs
    names = [str(run.number) for run in runs]
    address = {"runs": _joined(names), **({"group": by} if groups is not None else {})}
    params, found = tables.params(runs), figures(runs)
    return {
        "runs": [(item, _without(item, shown)) for item in shown],
        "curves": {
            "runs": listing(runs),
            **({"groups": relations.group_subjects(by, groups)} if groups is not None else {}),
        },
        "listing": f"/api/v1/compare/metrics/?{urlencode({'runs': _joined(names)}, safe=',')}",
        "series": f"/api/v1/compare/series/?{urlencode(address, safe=',')}",
        "csv": "",
        "grouping": relations.groupings(runs, params, by if groups is not None else "")
        if len(runs) > 1
        else (),
        "params": params,
        "tags": tables.tags(runs),
        "attributes": tables.attributes(runs),
        "figures": found,
        "has_curves": bool(found),
        "relations": relations.relations(shown, params, found),
        "sections": _sections(opened),
        "differences": _differences(opened),
        "names": _joined(names),
    }


def _sections(opened: str | None) -> dict[str, Section]:
    names = None if opened is None else set(opened.split(","))
    return {
        section.name: replace(section, is_open=section.is_usual if names is None else section.name in names)
        for section in SECTIONS
    }


def _differences(opened: str | None) -> list[Section]:
    names = set() if opened is None else set(opened.split(","))
    return [
        Section(kind, kinds.word, is_usual=False, is_open=kind in names, kind=kind)
        for kind, kinds in KINDS.items()
    ]


def _without(item: ShownRun, shown: Sequence[ShownRun]) -> Mapping[str, str]:
    """What the address says once this run has been taken out: a reference is put away, a chosen run no longer
    named."""
    if item.is_reference:
        return {"without": str(item.run.number)}
    return {
        "runs": _joined(
            str(other.run.number) for other in shown if not other.is_reference and other is not item
        )
    }


def _joined(names: Any) -> str:
    return ",".join(names)
