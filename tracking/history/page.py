"""The run table: a page of it, its parts for htmx, and the menus that change it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from django.http import Http404, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_GET

from jobs.models import Experiment, Run
from jobs.views.partials import render_part, wants_part
from jobs.views.run_lookup import run_numbered
from tracking.history import columns, key_catalog, saved_views
from tracking.history.cell_filters import narrowing
from tracking.history.completion import complete
from tracking.history.groups import grouped
from tracking.history.rows import rows
from tracking.history.table_query import GROUPS, VIEWS, Question
from tracking.search import FilterError, count_runs, find_run_ids
from tracking.search.parser import parse
from workspaces.access import Principal, WorkspaceRequest, needs
from workspaces.states import Role

PAGE = "tracking/history/runs.html"
ON_A_PAGE = 50
MOST_COUNTED = 1_000
MOST_EXPERIMENTS = 500
MOST_PARTS = 100
FIELDS = {
    "columns": ("column",),
    "groups": ("group", "order"),
    "filters": ("filter", "q", "state", "experiment", "mine", "view"),
}
"""What each form says of the address."""
MENUS = ("columns", "groups", "views")
ROWS = "run-rows"
"""What a hint of the socket has fetched anew: the element's id."""


@dataclass(frozen=True)
class Pages:
    """`total` is None where there are more than are counted."""

    first: int
    last: int
    total: int | None
    newer: str
    older: str


@require_GET
@needs(Role.VIEWER)
def runs(request: WorkspaceRequest) -> HttpResponse:
    question = Question.read(request.GET)
    try:
        shown = _table(question, request.principal)
    except FilterError as error:
        return _refused(request, question, error)
    shown |= _frame(request, question)
    if request.headers.get("HX-Target") == ROWS and wants_part(request):
        return render_part(request, PAGE, "tracking/history/_rows.html", shown)
    response = render_part(request, PAGE, "tracking/history/_runs.html", shown)
    response["HX-Push-Url"] = f"{request.path}{question.address(page=question.page)}"
    return response


@require_GET
@needs(Role.VIEWER)
def parts(request: WorkspaceRequest, number: int) -> HttpResponse:
    """The rows of what is part of a run, in the columns of the table that asks."""
    whole = run_numbered(request.principal, number)
    question = Question.read(request.GET)
    found = (
        Run.objects.filter(parent=whole, deleted_at=None)
        .order_by("created_at", "number")
        .values_list("pk", flat=True)
    )
    return _more_rows(request, question, list(found[:MOST_PARTS]))


@require_GET
@needs(Role.VIEWER)
def of_group(request: WorkspaceRequest) -> HttpResponse:
    """The rows of a group's runs."""
    question = replace(Question.read(request.GET), groups=())
    try:
        ids = find_run_ids(question.asked(request.principal), question.order, limit=MOST_PARTS + 1)
    except FilterError as error:
        raise Http404 from error
    return _more_rows(request, question, ids)


@require_GET
@needs(Role.VIEWER)
def completion(request: WorkspaceRequest) -> JsonResponse:
    """What may come next in a filter, and what is wrong with it as it stands."""
    text, at = request.GET.get("filter", "")[:20_000], request.GET.get("at", "")
    cursor = min(int(at[:6]), len(text)) if at.isascii() and at.isdecimal() else len(text)
    found = complete(request.principal.workspace, text, cursor)
    try:
        parse(text)
    except FilterError as error:
        trouble: dict[str, Any] | None = {"message": error.message, "position": error.position}
    else:
        trouble = None
    return JsonResponse(
        {
            "begin": found.begin,
            "offers": [{"text": offer.text, "kind": offer.kind} for offer in found.offers],
            "error": trouble,
        }
    )


@require_GET
@needs(Role.VIEWER)
def menu(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Columns, groups or views to choose from, once their menu is opened."""
    if name not in MENUS:
        raise Http404
    question = Question.read(_query_of(request))
    context: dict[str, Any] = {"question": question, "kept": _kept(question, without=name)}
    if name == "views":
        context |= saved_views.listed(request.principal, question)
    else:
        context |= {"known": key_catalog.keys(request.principal.workspace), "attributes": columns.ATTRIBUTES}
        context["picked"] = set(question.groups if name == "groups" else _columns_of(request, question))
    return render(request, f"tracking/history/_menu_{name}.html", context)


def _table(question: Question, who: Principal) -> dict[str, Any]:
    if question.groups:
        chosen = columns.chosen(question) or columns.usual(find_run_ids(question.asked(who), (), limit=ON_A_PAGE))
        keys = columns.valid_groups(question)
        spelled = tuple(column.text for column in chosen)
        narrow = narrowing(replace(question, groups=(), columns=spelled))
        found = grouped(question, keys, chosen, who, narrow)
        return {
            "grouped": found,
            "group_keys": keys,
            "heads": columns.heads(question, chosen),
            "is_empty": not found.groups,
        }
    skip = (question.page - 1) * ON_A_PAGE
    asked, narrow = question.asked(who), narrowing(question)
    ids = find_run_ids(asked, question.order, limit=ON_A_PAGE + 1, skip=skip)
    if not ids and skip:
        # The runs that were there have gone meanwhile: the last page that is.
        there = count_runs(asked, skip)
        return _table(replace(question, page=max(1, -(-there // ON_A_PAGE))), who)
    is_more, ids = len(ids) > ON_A_PAGE, ids[:ON_A_PAGE]
    chosen = columns.chosen(question) or columns.usual(ids)
    total = count_runs(asked, MOST_COUNTED + 1) if is_more or skip else len(ids)
    return {
        "rows": rows(ids, chosen, who.user, narrow),
        "heads": columns.heads(question, chosen),
        "below": question.shown_as(column.text for column in chosen),
        "pages": Pages(
            skip + 1,
            skip + len(ids),
            total if total <= MOST_COUNTED else None,
            question.address(page=question.page - 1) if question.page > 1 else "",
            question.address(page=question.page + 1) if is_more else "",
        ),
        "is_empty": not ids,
    }


def _more_rows(request: WorkspaceRequest, question: Question, ids: list[str]) -> HttpResponse:
    try:
        chosen = columns.chosen(question) or columns.usual(ids)
        narrow = narrowing(question)
    except FilterError as error:
        raise Http404 from error
    context = {
        "rows": rows(ids[:MOST_PARTS], chosen, request.principal.user, narrow),
        "is_part": True,
        "rest": question.address() if len(ids) > MOST_PARTS else "",
        "may_act": request.principal.may(Role.CONTRIBUTOR),
        "heads": columns.heads(question, chosen),
        "below": question.shown_as(question.columns),
    }
    return render(request, "tracking/history/_some_rows.html", context)


def _frame(request: WorkspaceRequest, question: Question) -> dict[str, Any]:
    who = request.principal
    context: dict[str, Any] = {
        "question": question,
        "may_act": who.may(Role.CONTRIBUTOR),
        "here": f"{request.path}{question.address(page=question.page)}",
    }
    if wants_part(request):
        return context
    of = Experiment.objects.filter(workspace=who.workspace, deleted_at=None).order_by("name")
    return context | {
        "states": [(name, word) for name, (word, _) in GROUPS.items()],
        "experiments": list(of.values_list("name", flat=True)[:MOST_EXPERIMENTS]),
        "views": list(VIEWS.items()),
        "kept": _kept(question, without="filters"),
    }


def _refused(request: WorkspaceRequest, question: Question, error: FilterError) -> HttpResponse:
    """Under the field, with the character that is wrong; what was found before stays."""
    context = _frame(request, question) | {
        "error": error,
        "before": error.text[: error.position],
        "is_empty": True,
        "heads": [],
    }
    end = _end_of_word(error.text, error.position)
    context |= {"wrong": error.text[error.position : end] or " ", "after": error.text[end:]}
    response = render_part(request, PAGE, "tracking/history/_filter_error.html", context)
    if not wants_part(request):
        response.status_code = 400
    response["HX-Retarget"], response["HX-Reswap"] = "#filter-error", "innerHTML"
    return response


def _end_of_word(text: str, begin: int) -> int:
    rest = text[begin:]
    return begin + max(1, len(rest.split()[0])) if rest.strip() and not rest[:1].isspace() else begin + 1


def _kept(question: Question, *, without: str) -> list[tuple[str, str]]:
    """What a form that changes the rest of the address has to carry along."""
    return [
        (name, text)
        for name, text in question.pairs()
        if name not in FIELDS.get(without, ()) and name != "page"
    ]


def _query_of(request: WorkspaceRequest) -> QueryDict:
    """Of the page that asks: the menu belongs to what is in its address now."""
    return QueryDict(
        urlsplit(request.headers.get("HX-Current-URL", "")).query or request.META.get("QUERY_STRING", "")
    )


def _columns_of(request: WorkspaceRequest, question: Question) -> list[str]:
    if question.columns:
        return list(question.columns)
    try:
        ids = find_run_ids(question.asked(request.principal), question.order, limit=ON_A_PAGE)
    except FilterError:
        ids = []
    return [column.text for column in columns.usual(ids)]
