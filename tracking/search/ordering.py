"""The order of runs. An order by logged data has stages, each of which reads along an index: runs with a
number, runs with another value (NaN, text), runs without the key. As in MLflow, the stages do not depend on
the direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.expressions import Combinable
from django.db.models.expressions import OrderBy as SqlOrder
from django.db.models.functions import Coalesce

from jobs.models import RunTag
from jobs.querysets import RunQuerySet
from tracking.models import Metric, Param
from tracking.search import attributes
from tracking.search.compiler import Scope, rows_for_key
from tracking.search.run_bounds import LASTED, duration_bounds, newest_bounds
from tracking.search.tree import Key, OrderBy
from tracking.search.value_bounds import ValueOrder
from tracking.search.vocabulary import AttributeType, KeyKind
from workspaces.models import Workspace

NEWEST = ("-created_at", "-number")
# NEWEST for few runs; the expression keeps the database from reading along an index.
SORTED_NEWEST = (Coalesce("created_at", "created_at").desc(), "-number")
FLAGS = {"archived": "archived_at", "pinned": "pinned", "mine": "created_by", "starred": "pinned"}
RELATED = {KeyKind.METRIC: "metrics", KeyKind.PARAM: "params", KeyKind.TAG: "tags"}
MODELS: dict[KeyKind, Any] = {KeyKind.METRIC: Metric, KeyKind.PARAM: Param, KeyKind.TAG: RunTag}


# Attributes that an index has in order, without runs that lack them: those are a stage of their own.
STAGED_ATTRIBUTES = frozenset({"end_time"})
# Of these an index serves only an order that does not say where nulls stand.
NEVER_NULL = frozenset(attributes.COLUMNS) - attributes.NULLABLE


@dataclass(frozen=True)
class OrderStage:
    """`bounded`: the first runs of the stage, at least about as many as asked for, by conditions that the
    database finds fast; each is wider than the one before."""

    runs: RunQuerySet
    is_last: bool
    bounded: Callable[[int], Iterator[RunQuerySet]] = lambda _: iter(())


@dataclass(frozen=True)
class OrderedSearch:
    """Runs and their order. `has_key`: all have the first key; `key_condition`: condition on that key's
    row; `has_logged_filter`: a filter by logged data selects them."""

    workspace: Workspace
    runs: RunQuerySet
    orders: Sequence[OrderBy]
    scope: Scope
    has_logged_filter: bool = False
    has_key: bool = False
    key_condition: Q | None = None


def stages(walk: OrderedSearch) -> Iterator[OrderStage]:
    """Yields the stages; together they contain every run once."""
    orders, scope = walk.orders, walk.scope
    # Stages save the database from sorting all runs of the experiments; a few candidates are sorted at once.
    is_staged = scope.runs is None and bool(orders) and _has_stages(orders[0].key)
    others = orders[1:] if is_staged else orders
    runs = walk.runs.alias(
        **attributes.computed_columns(
            order.key.name for order in others if order.key.kind is KeyKind.ATTRIBUTE
        )
    )
    runs = runs.alias(**{name: subquery for order in others for name, subquery in _subqueries(order.key)})
    rest = [
        *(expression for order in others for expression in _sort_expressions(order)),
        *(NEWEST if scope.runs is None else SORTED_NEWEST),
    ]
    if not is_staged:
        yield OrderStage(runs.order_by(*rest), True, partial(_bounded_by_columns, walk, runs.order_by(*rest)))
        return
    first = orders[0]
    if first.key.kind is KeyKind.ATTRIBUTE:
        column = _attribute(first.key)
        ended = runs.filter(**{f"{column}__isnull": False})
        yield OrderStage(ended.order_by(_sort_expression(first, column), *rest), False)
        yield OrderStage(runs.filter(**{f"{column}__isnull": True}).order_by(*rest), True)
        return
    for column, key_condition in _parts(first.key):
        if column or rows_for_key(first.key, scope).filter(**key_condition).exists():
            yield _key_stage(walk, runs, rest, column, key_condition)
    # A condition on the first key excludes runs without it, so their stage would be empty.
    if not walk.has_key:
        yield OrderStage(
            runs.exclude(pk__in=rows_for_key(first.key, scope).values("run_id")).order_by(*rest), True
        )


def _bounded_by_columns(walk: OrderedSearch, ordered: RunQuerySet, count: int) -> Iterator[RunQuerySet]:
    if connection.vendor != "postgresql" or walk.scope.runs is not None or len(walk.scope.experiments) < 2:
        return
    if not walk.orders:
        if walk.has_logged_filter:
            yield from map(ordered.filter, newest_bounds(walk.workspace, count))
    elif walk.orders[0].key.kind is KeyKind.ATTRIBUTE and walk.orders[0].key.name == "duration":
        bounds = duration_bounds(walk.workspace, count, descending=walk.orders[0].descending)
        yield from map(ordered.alias(lasted=LASTED).filter, bounds)


def _has_stages(key: Key) -> bool:
    return key.kind is not KeyKind.ATTRIBUTE or key.name in STAGED_ATTRIBUTES


def _key_stage(
    walk: OrderedSearch,
    runs: RunQuerySet,
    rest: Sequence[SqlOrder | str],
    column: str,
    key_condition: dict[str, object],
) -> OrderStage:
    """Returns the stage of the runs whose row of the first key meets the condition, by `column` if it has a
    name."""
    first, scope = walk.orders[0], walk.scope
    related = RELATED[first.key.kind]
    order = [*([_sort_expression(first, f"{related}__{column}")] if column else []), *rest]

    def matching(bound: dict[str, object]) -> RunQuerySet:
        # One filter() call, because each call would add another join.
        rows = _key_rows_condition(related, first.key, scope, key_condition | bound)
        return runs.filter(rows & (walk.key_condition or Q())).order_by(*order)

    def bounded(count: int) -> Iterator[RunQuerySet]:
        if column:
            without = next(
                (name.removesuffix("__isnull") for name in key_condition if column not in name), ""
            )
            model = MODELS[first.key.kind]
            values = ValueOrder(model, column, first.key.name, first.descending, scope.experiments, without)
            yield from (matching(bound) for bound in values.bounds(count))

    return OrderStage(matching({}), False, bounded)


def _parts(key: Key) -> list[tuple[str, dict[str, Any]]]:
    """Returns the stages of a key: the column to sort by ("" for none) and the conditions on the row."""
    if key.kind is KeyKind.METRIC:
        column = f"{key.part}_value"
        return [(column, {f"{column}__isnull": False}), ("", {f"{column}__isnull": True})]
    if key.kind is KeyKind.PARAM:
        return [("number", {"number__isnull": False}), ("short", {"number__isnull": True})]
    return [("short", {})]


def _key_rows_condition(related: str, key: Key, scope: Scope, key_condition: dict[str, object]) -> Q:
    # Equality, for a single experiment, keeps the index order usable, as in Scope.experiment_condition.
    is_single = len(scope.experiments) == 1
    experiments = (
        {"experiment_id": scope.experiments[0]} if is_single else {"experiment_id__in": scope.experiments}
    )
    return Q(
        **{
            f"{related}__{name}": value
            for name, value in {"key": key.name, **experiments, **key_condition}.items()
        }
    )


def _subqueries(key: Key) -> Iterator[tuple[str, Combinable]]:
    """Yields the aliases that `_sort_expressions` sorts by."""
    if key.kind is KeyKind.ATTRIBUTE:
        return
    rows = MODELS[key.kind].objects.filter(run=OuterRef("pk"), key=key.name)
    for column in _columns(key):
        yield f"{_name(key)}_{column}", Subquery(rows.values(column)[:1])
    yield f"{_name(key)}_exists", Exists(rows)


def _sort_expressions(order: OrderBy) -> Iterator[SqlOrder]:
    if order.key.kind is KeyKind.ATTRIBUTE:
        column = _attribute(order.key)
        yield _sort_expression(order, column, nulls_last=order.key.name not in NEVER_NULL)
        return
    for column in _columns(order.key):
        yield _sort_expression(order, f"{_name(order.key)}_{column}", nulls_last=True)
    # Runs without the key have a null value like those with NaN; this puts them after NaN.
    yield F(f"{_name(order.key)}_exists").desc()


def _columns(key: Key) -> list[str]:
    return [column for column, _ in _parts(key) if column]


def _name(key: Key) -> str:
    # Keys may contain any characters, but Django refuses quotes and blanks in an alias.
    return f"by_{key.kind.value}_{key.part}_{key.name.encode().hex()}"


def _attribute(key: Key) -> str:
    return FLAGS[key.name] if key.type is AttributeType.FLAG else attributes.column_name(key.name)


def _sort_expression(order: OrderBy, column: str, *, nulls_last: bool = False) -> SqlOrder:
    # Django accepts True and None here, but raises an error for False.
    last = True if nulls_last else None
    return F(column).desc(nulls_last=last) if order.descending else F(column).asc(nulls_last=last)
