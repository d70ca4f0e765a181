"""The order of runs. By what they have logged it comes in stages, each walked along an index: those with a
number, those with another value (NaN, text), those without the key; as in MLflow, whichever the direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.expressions import Combinable
from django.db.models.expressions import OrderBy as SqlOrder
from django.db.models.functions import Coalesce

from jobs.models import RunTag
from jobs.querysets import RunQuerySet
from tracking.models import Metric, Param
from tracking.search import attributes
from tracking.search.compiler import Scope, rows_of
from tracking.search.tree import Key, OrderBy
from tracking.search.vocabulary import Kind, Type

NEWEST = ("-created_at", "-number")
SORTED_NEWEST = (Coalesce("created_at", "created_at").desc(), "-number")
"""The same where few are sorted: no index is to be walked for it."""
FLAGS = {"archived": "archived_at", "pinned": "pinned", "mine": "created_by", "starred": "pinned"}
RELATED = {Kind.METRIC: "metrics", Kind.PARAM: "params", Kind.TAG: "tags"}
ROWS: dict[Kind, Any] = {Kind.METRIC: Metric, Kind.PARAM: Param, Kind.TAG: RunTag}


@dataclass(frozen=True)
class Stage:
    runs: RunQuerySet
    is_last: bool


@dataclass(frozen=True)
class Walk:
    """Runs to put in order. `has_key`: all of them have the first key; `meets`: what must be true of its row,
    by a join."""

    runs: RunQuerySet
    orders: Sequence[OrderBy]
    scope: Scope
    has_key: bool = False
    meets: Q | None = None


def stages(walk: Walk) -> Iterator[Stage]:
    """One after the other they hold every run once."""
    orders, scope = walk.orders, walk.scope
    is_walked = scope.runs is None and bool(orders) and orders[0].key.kind is not Kind.ATTRIBUTE
    others = orders[1:] if is_walked else orders
    runs = walk.runs.alias(
        **attributes.made(order.key.name for order in others if order.key.kind is Kind.ATTRIBUTE)
    )
    runs = runs.alias(**{name: made for order in others for name, made in _logged(order.key)})
    rest = [
        *(way for order in others for way in _ways(order)),
        *(NEWEST if scope.runs is None else SORTED_NEWEST),
    ]
    if not is_walked:
        yield Stage(runs.order_by(*rest), True)
        return
    first = orders[0]
    related = RELATED[first.key.kind]
    for column, meets in _parts(first.key):
        if not column and not rows_of(first.key, scope).filter(**meets).exists():
            continue
        # One call: each would join anew.
        found = runs.filter(_having(related, first.key, scope, meets) & (walk.meets or Q()))
        walked = [_way(first, f"{related}__{column}")] if column else []
        yield Stage(found.order_by(*walked, *rest), False)
    if not walk.has_key:
        yield Stage(runs.exclude(pk__in=rows_of(first.key, scope).values("run_id")).order_by(*rest), True)


def _parts(key: Key) -> list[tuple[str, dict[str, Any]]]:
    """Column to walk along (none: in no order), and what must be true of the row."""
    if key.kind is Kind.METRIC:
        column = f"{key.part}_value"
        return [(column, {f"{column}__isnull": False}), ("", {f"{column}__isnull": True})]
    if key.kind is Kind.PARAM:
        return [("number", {"number__isnull": False}), ("short", {"number__isnull": True})]
    return [("short", {})]


def _having(related: str, key: Key, scope: Scope, meets: dict[str, Any]) -> Q:
    one = len(scope.experiments) == 1
    of = {"experiment_id": scope.experiments[0]} if one else {"experiment_id__in": scope.experiments}
    return Q(**{f"{related}__{name}": value for name, value in {"key": key.name, **of, **meets}.items()})


def _logged(key: Key) -> Iterator[tuple[str, Combinable]]:
    """What `_ways` orders by, looked up of each run."""
    if key.kind is Kind.ATTRIBUTE:
        return
    rows = ROWS[key.kind].objects.filter(run=OuterRef("pk"), key=key.name)
    for column in _columns(key):
        yield f"{_name(key)}_{column}", Subquery(rows.values(column)[:1])
    yield f"{_name(key)}_known", Exists(rows)


def _ways(order: OrderBy) -> Iterator[SqlOrder]:
    if order.key.kind is Kind.ATTRIBUTE:
        yield _way(order, _attribute(order.key), nulls_last=True)
        return
    for column in _columns(order.key):
        yield _way(order, f"{_name(order.key)}_{column}", nulls_last=True)
    yield F(f"{_name(order.key)}_known").desc()


def _columns(key: Key) -> list[str]:
    return [column for column, _ in _parts(key) if column]


def _name(key: Key) -> str:
    return f"by_{key.kind.value}_{key.part}_{key.name.encode().hex()}"


def _attribute(key: Key) -> str:
    return FLAGS[key.name] if key.type is Type.FLAG else attributes.column(key.name)


def _way(order: OrderBy, column: str, *, nulls_last: bool = False) -> SqlOrder:
    last = True if nulls_last else None
    return F(column).desc(nulls_last=last) if order.descending else F(column).asc(nulls_last=last)
