"""The refresh of an open run table: only the rows that differ from those that the page shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET

from jobs.models import Run
from jobs.querysets import RunQuerySet
from jobs.states import ACTIVE
from tracking.history.row_markup import version_of
from tracking.history.table_page import TablePage, group_context, load_page
from tracking.history.table_query import TableQuery
from tracking.search import FilterError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

# A page shows 50 runs; the others are child runs that are unfolded below them.
MAX_KNOWN_ROWS = 1_000
_ROW = re.compile(r"(\d{1,9})\.(\w{1,16})")
_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True)
class KnownRows:
    """What a page shows: the versions of its rows by number, in their order, and those of unfolded child
    runs.

    `changed`: the numbers of the runs that may have changed; None if the page cannot know, because it was not
    connected."""

    rows: Mapping[int, str]
    parts: Mapping[int, str]
    changed: frozenset[int] | None

    @classmethod
    def read(cls, query: QueryDict) -> KnownRows:
        numbers = frozenset(int(text) for text in _NUMBER.findall(query.get("changed", "")))
        return cls(
            _versions(query.get("rows", "")),
            _versions(query.get("parts", "")),
            numbers if "changed" in query else None,
        )

    def may_differ(self, number: int, state: str) -> bool:
        """Whether to compare the row. No message says that an active run has logged new values."""
        is_known = number in self.rows or number in self.parts
        return not is_known or self.changed is None or number in self.changed or state in ACTIVE


@require_GET
@needs(Role.VIEWER)
def changed_rows(request: WorkspaceRequest) -> HttpResponse:
    """Renders the order of the page's runs and the rows that have changed: nothing (204) if none has, and
    the whole table if its `shape` is another one than on the page."""
    table_query = TableQuery.read(request.GET)
    try:
        response = _response(request, table_query)
    except FilterError:
        # The page shows the error already, from the request that brought the filter.
        response = HttpResponse(status=204)
    response["Cache-Control"] = "no-store"
    return response


def _response(request: WorkspaceRequest, table_query: TableQuery) -> HttpResponse:
    principal = request.principal
    table = None if table_query.groups else load_page(table_query, principal)
    context = group_context(table_query, principal) if table is None else table.context()
    if context["shape"] != request.GET.get("shape", ""):
        return render(request, "tracking/history/_rows.html", context)
    if table is None:
        return HttpResponse(status=204)
    known = KnownRows.read(request.GET)
    shown = _facts(Run.objects.filter(pk__in=table.ids))
    parts = _facts(Run.objects.for_workspace(principal.workspace).filter(number__in=known.parts))
    order = [shown[run][0] for run in table.ids if run in shown]
    rows = [
        *_different(table, known, shown, is_part=False),
        *_different(table, known, parts, is_part=True),
    ]
    if not rows and order == list(known.rows):
        return HttpResponse(status=204)
    changes = {"rows": rows, "order": order, "pages": table.links}
    return render(request, "tracking/history/_changed_rows.html", changes)


def _facts(runs: RunQuerySet) -> dict[str, tuple[int, str]]:
    """Returns number and state by id."""
    return {run: (number, state) for run, number, state in runs.values_list("pk", "number", "state")}


def _different(
    table: TablePage, known: KnownRows, facts: Mapping[str, tuple[int, str]], *, is_part: bool
) -> list[SafeString]:
    """Returns the rows of those runs that are not on the page in this version."""
    ids = [run for run, (number, state) in facts.items() if known.may_differ(number, state)]
    markup = table.markup(ids, is_part=is_part)
    versions = known.parts if is_part else known.rows
    return [row for number, row in markup.items() if versions.get(number) != version_of(row)]


def _versions(text: str) -> dict[int, str]:
    return {int(number): version for number, version in _ROW.findall(text)[:MAX_KNOWN_ROWS]}
