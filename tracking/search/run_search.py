"""Searches for runs: filter, order and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from jobs.models import Experiment, Run
from jobs.querysets import RunQuerySet
from jobs.retention.deletion import PURGE_STARTED
from tracking.search import attributes, query_time
from tracking.search.compiler import (
    LoggedKey,
    Scope,
    attribute_names,
    compile_filter,
    row_condition,
    rows_by_key,
)
from tracking.search.ordering import RELATED, OrderedSearch, OrderStage, stages
from tracking.search.parser import parse, parse_orders
from tracking.search.prefilter import prefilter_scope
from tracking.search.tree import Node, OrderBy
from workspaces.models import User, Workspace

VIEWS = ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")
LOAD_BATCH = 5_000
# A run whose purge has begun may have lost rows already and cannot be restored, so no search shows it.
NOT_PURGED = Q(deleted_at=None) | ~Q(deleted_at=PURGE_STARTED)


@dataclass(frozen=True)
class RunPage:
    """One page of runs; `has_more` says whether others follow."""

    runs: list[Run]
    has_more: bool


@dataclass(frozen=True)
class RunQuery:
    """The parsed conditions of a search. `experiments` None means all; `name_part` is part of a run's name;
    `where` is an additional condition."""

    workspace: Workspace
    filter: Node | None = None
    experiments: tuple[int, ...] | None = None
    name_part: str = ""
    view: str = "ACTIVE_ONLY"
    user: User | None = None
    where: Q | None = None

    def matching_runs(self) -> tuple[RunQuerySet, Scope]:
        """Returns the matching runs, unordered, and the scope for queries of their logged data."""
        scope = self.scope()
        return self.runs(scope), scope

    def scope(self) -> Scope:
        return prefilter_scope(self.filter, Scope(self._experiments(), self.user.pk if self.user else None))

    def runs(self, scope: Scope, *, without: LoggedKey | None = None) -> RunQuerySet:
        """Returns the matching runs; conditions on the row of the key `without` are left out."""
        # By the workspace alone, SQLite would scan all its runs.
        runs = (
            Run.objects.with_deleted_for_workspace(self.workspace)
            if scope.runs is None
            else Run.objects.filter(pk__in=scope.runs)
        )
        matches = self._in_view(runs)
        if self.experiments is not None:
            matches = matches.filter(scope.experiment_condition())
        if self.filter is not None:
            matches = matches.alias(**attributes.computed_columns(attribute_names(self.filter)))
            matches = matches.filter(compile_filter(self.filter, scope, without=without))
        if self.name_part:
            matches = matches.matching(self.workspace, text=self.name_part)
        return matches.filter(self.where) if self.where is not None else matches

    def _in_view(self, runs: RunQuerySet) -> RunQuerySet:
        if self.view == "ACTIVE_ONLY":
            return runs.not_deleted()
        return (
            runs.deleted().exclude(deleted_at=PURGE_STARTED)
            if self.view == "DELETED_ONLY"
            else runs.filter(NOT_PURGED)
        )

    def _experiments(self) -> tuple[int, ...]:
        rows = Experiment.objects.filter(workspace=self.workspace)
        # Ids may come from a client; those of other workspaces' experiments are dropped here.
        if self.experiments is not None:
            rows = rows.filter(pk__in=self.experiments)
        return tuple(rows.order_by("pk").values_list("pk", flat=True))


def build_query(
    workspace: Workspace,
    *,
    text: str = "",
    experiments: Sequence[int] | None = None,
    name_part: str = "",
    view: str = "ACTIVE_ONLY",
    user: User | None = None,
    where: Q | None = None,
) -> RunQuery:
    """Returns a query for the filter `text`. Raises FilterError."""
    experiment_ids = None if experiments is None else tuple(sorted(set(experiments)))
    return RunQuery(workspace, parse(text), experiment_ids, name_part.strip(), view, user, where)


def find_runs(
    workspace: Workspace,
    *,
    text: str = "",
    experiments: Sequence[int] | None = None,
    name_part: str = "",
    order_by: Sequence[str] = (),
    view: str = "ACTIVE_ONLY",
    limit: int,
    skip: int = 0,
    user: User | None = None,
    where: Q | None = None,
) -> RunPage:
    """Returns a page of runs with experiment and creator, without spec and preview; by default the newest
    first.

    `text` is a filter; `experiments` are ids, None means all of the workspace; `user` is the person that
    `starred` and `mine` refer to; the others as in RunQuery. Raises FilterError.
    """
    query = build_query(
        workspace, text=text, experiments=experiments, name_part=name_part, view=view, user=user, where=where
    )
    ids = find_run_ids(query, order_by, limit=limit + 1, skip=skip)
    return RunPage(load_runs(ids[:limit]), len(ids) > limit)


def count_runs(query: RunQuery, limit: int) -> int:
    """Returns the number of matching runs, at most `limit`."""
    with query_time.time_limit():
        return query.matching_runs()[0].order_by().values("pk")[:limit].count()


def find_run_ids(query: RunQuery, order_by: Sequence[str], *, limit: int, skip: int = 0) -> list[str]:
    """Returns up to `limit` run ids in order, after the first `skip`. Raises FilterError."""
    orders = parse_orders(order_by)
    scope = query.scope()
    # No candidates: a condition that must be true matches no run.
    if scope.runs == ():
        return []
    ids: list[str] = []
    with query_time.time_limit():
        for stage in stages(_ordered_search(query, orders, scope)):
            page = _page_of_stage(stage, skip, limit - len(ids))
            ids += page
            if len(ids) >= limit or stage.is_last:
                break
            # A page that begins in this stage continues with the first run of the next one. If it begins
            # later, all runs of this stage count towards the runs that it skips.
            skip = 0 if page or not skip else skip - _skipped_count(stage, skip)
    return ids


def _ordered_search(query: RunQuery, orders: Sequence[OrderBy], scope: Scope) -> OrderedSearch:
    """Returns the search in its order. Conditions on the key that orders the runs become part of that join
    instead of a subquery."""
    key = (orders[0].key.kind, orders[0].key.name) if orders else None
    logged = rows_by_key(query.filter, scope) if query.filter is not None else {}
    if query.filter is None or key not in logged:
        return OrderedSearch(
            query.workspace, query.runs(scope), orders, scope, has_logged_filter=bool(logged)
        )
    # With candidates the order has no stages, and so no join that could take the condition.
    key_condition = row_condition(query.filter, key, RELATED[key[0]]) if scope.runs is None else None
    return OrderedSearch(
        query.workspace,
        query.runs(scope, without=key if key_condition is not None else None),
        orders,
        scope,
        has_key=True,
        key_condition=key_condition,
    )


def load_runs(ids: Sequence[str]) -> list[Run]:
    """Returns the runs with these ids, in their order; ids that no longer exist are left out."""
    rows: dict[str, Run] = {}
    query = Run.objects.select_related("experiment", "created_by").defer("preview", "spec")
    # SQLite allows 32,766 parameters in a query.
    for start in range(0, len(ids), LOAD_BATCH):
        rows.update(query.order_by().in_bulk(ids[start : start + LOAD_BATCH]))
    return [rows[run] for run in ids if run in rows]


def _page_of_stage(stage: OrderStage, skip: int, limit: int) -> list[str]:
    for runs in stage.bounded(skip + limit):
        page = list(runs.values_list("pk", flat=True)[skip : skip + limit])
        # If it is not full, others may follow beyond the bound.
        if len(page) == limit:
            return page
    return list(stage.runs.values_list("pk", flat=True)[skip : skip + limit])


def _skipped_count(stage: OrderStage, skip: int) -> int:
    """Returns how many runs of a stage the page skips when it starts after that stage."""
    return stage.runs.order_by().values("pk")[:skip].count()
