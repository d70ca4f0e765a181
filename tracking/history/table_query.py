"""The state of the run table in its URL: filters, order, columns, groups and page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from django.db.models import Q
from django.http import QueryDict

from jobs.models import Experiment
from jobs.states import ACTIVE, WAITING, RunState
from tracking.search import RunQuery, parse, parse_order
from tracking.search.compiler import attribute_names
from tracking.search.vocabulary import KeyKind
from workspaces.access import Principal

GROUPS: dict[str, tuple[str, frozenset[RunState]]] = {
    "active": ("Active", ACTIVE),
    "waiting": ("Waiting", WAITING),
    "running": ("Running", ACTIVE - WAITING),
    "completed": ("Completed", frozenset({RunState.COMPLETED})),
    "failed": ("Failed", frozenset({RunState.FAILED})),
    "canceled": ("Canceled", frozenset({RunState.CANCELED})),
}
VIEWS = {"": "Active", "archived": "Archived", "deleted": "Deleted"}
MAX_LIST_ITEMS = 40
MAX_PAGE = 1000
MAX_TEXT_LENGTH = 4000


@dataclass(frozen=True)
class TableQuery:
    """`name_part` is part of a run's name. `order`, `columns` and `groups` are keys of the filter grammar; an
    order may end with DESC."""

    filter: str = ""
    name_part: str = ""
    state: str = ""
    experiment: str = ""
    mine: bool = False
    view: str = ""
    order: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    page: int = 1

    @classmethod
    def read(cls, query: QueryDict) -> TableQuery:
        state, view, page = query.get("state", ""), query.get("view", ""), query.get("page", "")
        return cls(
            filter=_plain(query, "filter")[: MAX_TEXT_LENGTH * 5],
            name_part=_plain(query, "q")[:200],
            state=state if state in GROUPS else "",
            experiment=query.get("experiment", "")[:250],
            mine=query.get("mine", "") == "1",
            view=view if view in VIEWS else "",
            order=_list(query, "order"),
            columns=_list(query, "column"),
            groups=_list(query, "group"),
            page=min(max(1, int(page[:9])), MAX_PAGE) if page.isascii() and page.isdecimal() else 1,
        )

    @property
    def is_filtered(self) -> bool:
        return bool(self.filter or self.name_part or self.state or self.experiment or self.mine or self.view)

    @property
    def is_flat(self) -> bool:
        """Whether child runs have rows of their own, because a search may be for them."""
        logged = any(parse_order(text).key.kind is not KeyKind.ATTRIBUTE for text in self.order)
        return bool(self.filter or self.name_part or self.groups or self.view or logged)

    def pairs(self) -> list[tuple[str, str]]:
        single = [
            ("filter", self.filter),
            ("q", self.name_part),
            ("state", self.state),
            ("experiment", self.experiment),
            ("mine", "1" if self.mine else ""),
            ("view", self.view),
        ]
        lists = [*(("order", text) for text in self.order), *(("column", text) for text in self.columns)]
        page = [("page", str(self.page))] if self.page > 1 else []
        return [
            *((name, text) for name, text in single if text),
            *lists,
            *(("group", text) for text in self.groups),
            *page,
        ]

    def address(self, **changes: Any) -> str:
        """Returns the query string; with changes it goes to the first page."""
        changed = replace(self, **({"page": 1} | changes)) if changes else self
        return "?" + urlencode(changed.pairs(), quote_via=quote)

    def with_columns(self, columns: Iterable[str]) -> str:
        """Returns the query string for child rows in the given columns."""
        return self.address(columns=tuple(columns), groups=())

    def run_query(self, who: Principal) -> RunQuery:
        """Returns the search for the table's runs; `mine` and `starred` mean `who`. Raises FilterError."""
        tree = parse(self.filter)
        where = Q(state__in=GROUPS[self.state][1]) if self.state else Q()
        if self.mine:
            where &= Q(created_by=who.user)
        # A filter that mentions `archived` decides by itself which runs are listed.
        if self.view != "deleted" and "archived" not in attribute_names(tree):
            where &= Q(archived_at__isnull=self.view != "archived")
        if not self.is_flat:
            where &= Q(parent=None)
        return RunQuery(
            who.workspace,
            tree,
            self._experiments(who),
            self.name_part,
            "DELETED_ONLY" if self.view == "deleted" else "ACTIVE_ONLY",
            who.user,
            where,
        )

    def _experiments(self, who: Principal) -> tuple[int, ...] | None:
        if not self.experiment:
            return None
        rows = Experiment.objects.filter(workspace=who.workspace, name=self.experiment)
        return tuple(rows.values_list("pk", flat=True))


def _plain(query: QueryDict, name: str) -> str:
    return query.get(name, "").replace("\x00", "").strip()


def _list(query: QueryDict, name: str) -> tuple[str, ...]:
    """Returns the distinct values in order, without those that are too long for a key."""
    items = dict.fromkeys(
        text.strip() for text in query.getlist(name) if 0 < len(text.strip()) <= MAX_TEXT_LENGTH
    )
    return tuple(items)[:MAX_LIST_ITEMS]
