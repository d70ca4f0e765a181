"""Views of the run table: pages, fragments for htmx, and menus."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from django.http import Http404, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_GET

from jobs.models import Experiment, Run
from jobs.views.partials import render_part, wants_part
from jobs.views.run_lookup import run_numbered
from tracking.history import columns, key_catalog, saved_views
from tracking.history.completion import complete
from tracking.history.table_page import PAGE_SIZE, group_context, load_page, table_of
from tracking.history.table_query import GROUPS, VIEWS, TableQuery
from tracking.search import FilterError, find_run_ids
from tracking.search.parser import parse
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

PAGE = "tracking/history/runs.html"
MAX_EXPERIMENTS = 500
MAX_CHILD_ROWS = 100
# The query parameters that each form sets.
FIELDS = {
    "columns": ("column",),
    "groups": ("group", "order"),
    "filters": ("filter", "q", "state", "experiment", "mine", "view"),
}
MENUS = ("columns", "groups", "views")


@require_GET
@needs(Role.VIEWER)
def runs(request: WorkspaceRequest) -> HttpResponse:
    table_query = TableQuery.read(request.GET)
    try:
        context = (
            group_context(table_query, request.principal)
            if table_query.groups
            else load_page(table_query, request.principal).context()
        )
    except FilterError as error:
        return _filter_error(request, table_query, error)
    context |= _frame(request, table_query)
    response = render_part(request, PAGE, "tracking/history/_runs.html", context)
    response["HX-Push-Url"] = f"{request.path}{table_query.address(page=table_query.page)}"
    return response


@require_GET
@needs(Role.VIEWER)
def child_rows(request: WorkspaceRequest, number: int) -> HttpResponse:
    """Renders the rows of a run's children, in the columns of the requesting table."""
    parent = run_numbered(request.principal, number)
    table_query = TableQuery.read(request.GET)
    children = (
        Run.objects.filter(parent=parent, deleted_at=None)
        .order_by("created_at", "number")
        .values_list("pk", flat=True)
    )
    return _more_rows(request, table_query, list(children[:MAX_CHILD_ROWS]))


@require_GET
@needs(Role.VIEWER)
def group_rows(request: WorkspaceRequest) -> HttpResponse:
    """Renders the rows of a group's runs."""
    # The link of a group contains its values as conditions of the filter, so its runs need no grouping.
    table_query = replace(TableQuery.read(request.GET), groups=())
    try:
        ids = find_run_ids(
            table_query.run_query(request.principal), table_query.order, limit=MAX_CHILD_ROWS + 1
        )
    except FilterError as error:
        raise Http404 from error
    return _more_rows(request, table_query, ids)


@require_GET
@needs(Role.VIEWER)
def completion(request: WorkspaceRequest) -> JsonResponse:
    """Returns completions for a filter and its current error as JSON."""
    text, at = request.GET.get("filter", "")[:20_000], request.GET.get("at", "")
    cursor = min(int(at[:6]), len(text)) if at.isascii() and at.isdecimal() else len(text)
    result = complete(request.principal.workspace, text, cursor)
    try:
        parse(text)
    except FilterError as error:
        error_json: dict[str, object] | None = {"message": error.message, "position": error.position}
    else:
        error_json = None
    return JsonResponse(
        {
            "begin": result.begin,
            "offers": [{"text": offer.text, "kind": offer.kind} for offer in result.offers],
            "error": error_json,
        }
    )


@require_GET
@needs(Role.VIEWER)
def menu(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Renders the content of the columns, groups or views menu."""
    if name not in MENUS:
        raise Http404
    table_query = TableQuery.read(_query_of(request))
    context: dict[str, object] = {
        "table_query": table_query,
        "hidden_fields": _hidden_fields(table_query, without=name),
    }
    if name == "views":
        context |= saved_views.menu_context(request.principal, table_query)
    else:
        context |= {
            "keys": key_catalog.workspace_keys(request.principal.workspace),
            "attributes": columns.ATTRIBUTES,
        }
        context["selected_keys"] = set(
            table_query.groups if name == "groups" else _columns_of(request, table_query)
        )
    return render(request, f"tracking/history/_menu_{name}.html", context)


def _more_rows(request: WorkspaceRequest, table_query: TableQuery, ids: list[str]) -> HttpResponse:
    try:
        table = table_of(table_query, request.principal, ids)
    except FilterError as error:
        raise Http404 from error
    context = {
        "rows": table.markup(ids[:MAX_CHILD_ROWS], is_part=True).values(),
        "rest": table_query.address() if len(ids) > MAX_CHILD_ROWS else "",
        "heads": table.columns,
    }
    return render(request, "tracking/history/_some_rows.html", context)


def _frame(request: WorkspaceRequest, table_query: TableQuery) -> dict[str, object]:
    principal = request.principal
    context: dict[str, object] = {
        "table_query": table_query,
        "may_act": principal.may(Role.CONTRIBUTOR),
        "here": f"{request.path}{table_query.address(page=table_query.page)}",
    }
    if wants_part(request):
        return context
    experiments = Experiment.objects.filter(workspace=principal.workspace, deleted_at=None).order_by("name")
    return context | {
        "states": [(name, word) for name, (word, _) in GROUPS.items()],
        "experiments": list(experiments.values_list("name", flat=True)[:MAX_EXPERIMENTS]),
        "views": list(VIEWS.items()),
        "hidden_fields": _hidden_fields(table_query, without="filters"),
    }


def _filter_error(request: WorkspaceRequest, table_query: TableQuery, error: FilterError) -> HttpResponse:
    """Renders the filter's error below its field; the rows on the page stay."""
    context = _frame(request, table_query) | {
        "error": error,
        "before": error.text[: error.position],
        "is_empty": True,
        "heads": [],
    }
    end = _end_of_word(error.text, error.position)
    context |= {"wrong": error.text[error.position : end] or " ", "after": error.text[end:]}
    response = render_part(request, PAGE, "tracking/history/_filter_error.html", context)
    # htmx ignores the content of error responses, so the fragment needs status 200.
    if not wants_part(request):
        response.status_code = 400
    response["HX-Retarget"], response["HX-Reswap"] = "#filter-error", "innerHTML"
    return response


def _end_of_word(text: str, begin: int) -> int:
    rest = text[begin:]
    return begin + max(1, len(rest.split()[0])) if rest.strip() and not rest[:1].isspace() else begin + 1


def _hidden_fields(table_query: TableQuery, *, without: str) -> list[tuple[str, str]]:
    """Returns the query parameters that a form must keep as hidden fields."""
    return [
        (name, text)
        for name, text in table_query.pairs()
        if name not in FIELDS.get(without, ()) and name != "page"
    ]


def _query_of(request: WorkspaceRequest) -> QueryDict:
    """Returns the query of the page that requested the fragment."""
    # The URL of a menu has no query; htmx sends the URL of its page in this header.
    return QueryDict(
        urlsplit(request.headers.get("HX-Current-URL", "")).query or request.META.get("QUERY_STRING", "")
    )


def _columns_of(request: WorkspaceRequest, table_query: TableQuery) -> list[str]:
    if table_query.columns:
        return list(table_query.columns)
    try:
        ids = find_run_ids(table_query.run_query(request.principal), table_query.order, limit=PAGE_SIZE)
    except FilterError:
        ids = []
    return [column.text for column in columns.default_columns(ids)]
