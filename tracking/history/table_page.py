"""One page of the run table: which runs it shows, in which columns, and where the other pages are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from django.utils.safestring import SafeString

from jobs.display.text import status_style
from jobs.states import RunState
from tracking.history import columns
from tracking.history.cell_filters import CellFilters
from tracking.history.columns import TableColumn
from tracking.history.groups import group_runs
from tracking.history.row_markup import render_rows
from tracking.history.rows import SAMPLES, build_rows
from tracking.history.table_query import TableQuery
from tracking.search import count_runs, find_run_ids
from workspaces.access import Principal
from workspaces.states import Role

PAGE_SIZE = 50
MAX_COUNTED = 1_000
# The icons that rows refer to: those of all states of a run.
ROW_ICONS = sorted({status_style(state).icon for state in RunState})


@dataclass(frozen=True)
class PageLinks:
    """Links to other pages; `total` is None if there are more than MAX_COUNTED runs."""

    first: int
    last: int
    total: int | None
    newer: str
    older: str


@dataclass(frozen=True)
class TablePage:
    """The runs of a page in their order. `filters` are the conditions that a cell can add."""

    table_query: TableQuery
    principal: Principal
    ids: Sequence[str]
    columns: Sequence[TableColumn]
    filters: CellFilters
    links: PageLinks

    @cached_property
    def shape(self) -> str:
        """What rows of the same table have in common: a digest of its columns, "" without any row."""
        if not self.ids:
            return ""
        return _digest("\n".join((self.table_query.view, *(column.text for column in self.columns))))

    def markup(self, ids: Sequence[str], *, is_part: bool = False) -> dict[int, SafeString]:
        """Returns the rows of these runs by their numbers, in the order of `ids`."""
        rows = build_rows(ids, self.columns, self.principal.user, self.filters)
        return render_rows(
            rows,
            is_part=is_part,
            is_deleted=self.table_query.view == "deleted",
            may_act=self.principal.may(Role.CONTRIBUTOR),
        )

    def context(self) -> dict[str, object]:
        """Returns what the template of the table needs. Its rows are rendered when it asks for them."""
        return _frame_context(self.table_query, self.principal) | {
            "rows": lambda: self.markup(self.ids).values(),
            "heads": columns.column_headers(self.table_query, self.columns),
            "below": self.table_query.with_columns(column.text for column in self.columns),
            "filter_prefix": self.filters.prefix,
            "pages": self.links,
            "shape": self.shape,
            "is_empty": not self.ids,
        }


def load_page(table_query: TableQuery, principal: Principal) -> TablePage:
    """Returns the page that the query names, or the last one if there are fewer. Raises FilterError."""
    skip = (table_query.page - 1) * PAGE_SIZE
    query = table_query.run_query(principal)
    ids = find_run_ids(query, table_query.order, limit=PAGE_SIZE + 1, skip=skip)
    if not ids and skip:
        # The page no longer exists, because runs were deleted: show the last one.
        count = count_runs(query, skip)
        return load_page(replace(table_query, page=max(1, -(-count // PAGE_SIZE))), principal)
    has_more, ids = len(ids) > PAGE_SIZE, ids[:PAGE_SIZE]
    # One more than MAX_COUNTED shows that there are too many to count.
    total = count_runs(query, MAX_COUNTED + 1) if has_more or skip else len(ids)
    links = PageLinks(
        skip + 1,
        skip + len(ids),
        total if total <= MAX_COUNTED else None,
        table_query.address(page=table_query.page - 1) if table_query.page > 1 else "",
        table_query.address(page=table_query.page + 1) if has_more else "",
    )
    return table_of(table_query, principal, ids, links)


def table_of(
    table_query: TableQuery, principal: Principal, ids: Sequence[str], links: PageLinks | None = None
) -> TablePage:
    """Returns a table of these runs in the columns of the query. Raises FilterError."""
    selected = columns.selected_columns(table_query) or columns.default_columns(ids)
    links = links or PageLinks(1, len(ids), len(ids), "", "")
    return TablePage(table_query, principal, ids, selected, CellFilters.of(table_query), links)


def group_context(table_query: TableQuery, principal: Principal) -> dict[str, object]:
    """Returns what the template of a grouped table needs. Raises FilterError."""
    selected = columns.selected_columns(table_query) or columns.default_columns(
        find_run_ids(table_query.run_query(principal), (), limit=PAGE_SIZE)
    )
    keys = columns.valid_groups(table_query)
    names = tuple(column.text for column in selected)
    filters = CellFilters.of(replace(table_query, groups=(), columns=names))
    group_table = group_runs(table_query, keys, selected, principal, filters.address)
    return _frame_context(table_query, principal) | {
        "grouped": group_table,
        "group_keys": keys,
        "heads": columns.column_headers(table_query, selected),
        "below": table_query.with_columns(names),
        "filter_prefix": filters.prefix,
        # Groups are few and refreshed together.
        "shape": _digest(repr(group_table)),
        "is_empty": not group_table.groups,
    }


def _frame_context(table_query: TableQuery, principal: Principal) -> dict[str, object]:
    return {
        "table_query": table_query,
        "may_act": principal.may(Role.CONTRIBUTOR),
        "icons": ROW_ICONS,
        "samples": SAMPLES.items(),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
