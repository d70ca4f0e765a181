"""Runs by a filter, in an order, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from jobs.models import Experiment, Run
from jobs.querysets import RunQuerySet
from jobs.retention.deletion import GONE
from tracking.search import attributes, query_time
from tracking.search.compiler import Logged, Scope, condition, logged, names, on_row
from tracking.search.ordering import RELATED, Stage, Walk, stages
from tracking.search.parser import parse, parse_orders
from tracking.search.prefilter import narrowed
from tracking.search.tree import Node, OrderBy
from workspaces.models import User, Workspace

VIEWS = ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")
AT_ONCE = 5_000
NOT_GONE = Q(deleted_at=None) | ~Q(deleted_at=GONE)


@dataclass(frozen=True)
class Found:
    """`more`: there are others after these."""

    runs: list[Run]
    more: bool


@dataclass(frozen=True)
class Asked:
    """A filter, read. `where`: what else must be true of a run."""

    workspace: Workspace
    filter: Node | None = None
    experiments: tuple[int, ...] | None = None
    named: str = ""
    view: str = "ACTIVE_ONLY"
    user: User | None = None
    where: Q | None = None

    def narrowed(self) -> tuple[RunQuerySet, Scope]:
        """The runs it is true of, in no order, and where to look for what they have logged."""
        scope = self.scope()
        return self.runs(scope), scope

    def scope(self) -> Scope:
        return narrowed(self.filter, Scope(self._experiments(), self.user.pk if self.user else None))

    def runs(self, scope: Scope, *, without: Logged | None = None) -> RunQuerySet:
        """`without`: whatever the filter says of this key's row."""
        # By the workspace alone SQLite would look at all its runs.
        runs = (
            Run.objects.ever_of(self.workspace)
            if scope.runs is None
            else Run.objects.filter(pk__in=scope.runs)
        )
        found = self._seen(runs)
        if self.experiments is not None:
            found = found.filter(scope.experiment())
        if self.filter is not None:
            found = found.alias(**attributes.made(names(self.filter)))
            found = found.filter(condition(self.filter, scope, without=without))
        if self.named:
            found = found.matching(text=self.named)
        return found.filter(self.where) if self.where is not None else found

    def _seen(self, runs: RunQuerySet) -> RunQuerySet:
        if self.view == "ACTIVE_ONLY":
            return runs.kept()
        return (
            runs.deleted().exclude(deleted_at=GONE) if self.view == "DELETED_ONLY" else runs.filter(NOT_GONE)
        )

    def _experiments(self) -> tuple[int, ...]:
        of = Experiment.objects.filter(workspace=self.workspace)
        if self.experiments is not None:
            of = of.filter(pk__in=self.experiments)
        return tuple(of.order_by("pk").values_list("pk", flat=True))


def asked(
    workspace: Workspace,
    *,
    text: str = "",
    experiments: Sequence[int] | None = None,
    named: str = "",
    view: str = "ACTIVE_ONLY",
    user: User | None = None,
    where: Q | None = None,
) -> Asked:
    """`text` is a filter, `named` part of a name; raises FilterError."""
    of = None if experiments is None else tuple(sorted(set(experiments)))
    return Asked(workspace, parse(text), of, named.strip(), view, user, where)


def find(
    workspace: Workspace,
    *,
    text: str = "",
    experiments: Sequence[int] | None = None,
    named: str = "",
    order_by: Sequence[str] = (),
    view: str = "ACTIVE_ONLY",
    most: int,
    skip: int = 0,
    user: User | None = None,
    where: Q | None = None,
) -> Found:
    """Runs with experiment and creator, without spec and preview, the newest first where no order is given.

    `text`: a filter. `experiments`: ids; None: all of the workspace. `named`: part of a name. `user`: whose
    `starred` and `mine`. `where`: what else must be true. Raises FilterError."""
    wanted = asked(
        workspace, text=text, experiments=experiments, named=named, view=view, user=user, where=where
    )
    ids = find_ids(wanted, order_by, most=most + 1, skip=skip)
    return Found(loaded(ids[:most]), len(ids) > most)


def count(wanted: Asked, most: int) -> int:
    """How many there are, as far as to `most`."""
    with query_time.limited():
        return wanted.narrowed()[0].order_by().values("pk")[:most].count()


def find_ids(wanted: Asked, order_by: Sequence[str], *, most: int, skip: int = 0) -> list[str]:
    """Up to `most` runs by id, in order, after the first `skip`. Raises FilterError."""
    orders = parse_orders(order_by)
    scope = wanted.scope()
    if scope.runs == ():
        return []
    found: list[str] = []
    with query_time.limited():
        for stage in stages(_walk(wanted, orders, scope)):
            part = list(stage.runs.values_list("pk", flat=True)[skip : skip + most - len(found)])
            found += part
            if len(found) >= most or stage.is_last:
                break
            skip = 0 if part or not skip else skip - _passed(stage, skip)
    return found


def _walk(wanted: Asked, orders: Sequence[OrderBy], scope: Scope) -> Walk:
    """What the filter says of the key that is ordered by is asked along the way, and not beforehand."""
    key = (orders[0].key.kind, orders[0].key.name) if orders else None
    if wanted.filter is None or key not in logged(wanted.filter, scope):
        return Walk(wanted.runs(scope), orders, scope)
    meets = on_row(wanted.filter, key, RELATED[key[0]]) if scope.runs is None else None
    return Walk(
        wanted.runs(scope, without=key if meets is not None else None),
        orders,
        scope,
        has_key=True,
        meets=meets,
    )


def loaded(ids: Sequence[str]) -> list[Run]:
    """These, in their order."""
    rows: dict[str, Run] = {}
    of = Run.objects.select_related("experiment", "created_by").defer("preview", "spec")
    for start in range(0, len(ids), AT_ONCE):
        rows.update(of.order_by().in_bulk(ids[start : start + AT_ONCE]))
    return [rows[run] for run in ids if run in rows]


def _passed(stage: Stage, skip: int) -> int:
    """How many of a stage's runs a page that begins after it has left behind."""
    return stage.runs.order_by().values("pk")[:skip].count()
