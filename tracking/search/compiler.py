"""A tree to a condition on runs. What a run has logged is found by index, as a set of runs: (experiment, key,
value, run)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from django.db.models import Model, Q, QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from jobs.models import RunTag
from tracking.models import Metric, Param, RunInput
from tracking.search import attributes, patterns
from tracking.search.tree import And, Comparison, Key, Node, Not, Or
from tracking.search.vocabulary import Kind, Type

SHORT = 200
"""Longer values have only so much of them in the index."""
Logged = tuple[Kind, str]
"""A key of what runs have logged, whichever part of it."""
LOOKUPS = {
    "=": "exact",
    ">": "gt",
    ">=": "gte",
    "<": "lt",
    "<=": "lte",
    "LIKE": "like",
    "ILIKE": "ilike",
    "IN": "in",
}
OPPOSITE = {"!=": "=", "NOT IN": "IN"}
CONTEXT = "mlflow.data.context"


@dataclass(frozen=True)
class Scope:
    """Where it is asked: in these experiments, by this person (None: by nobody in particular); `runs`: of
    these alone."""

    experiments: tuple[int, ...]
    user_id: int | None = None
    runs: tuple[str, ...] | None = None

    def of(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Of what runs have logged."""
        if self.runs is not None:
            return rows.filter(run_id__in=self.runs)
        return rows.filter(self.experiment())

    def experiment(self) -> Q:
        """Of runs, and of what they have logged. One alone lets an index be walked in its order."""
        one = len(self.experiments) == 1
        return Q(experiment_id=self.experiments[0]) if one else Q(experiment_id__in=self.experiments)


def condition(node: Node, scope: Scope, *, without: Logged | None = None) -> Q:
    """On Run, with the aliases of `attributes.made(names(node))`. Two-valued: a run without the key does not
    match.

    `without`: what must be true of this key's row is left out; `on_row` says it.
    """
    if isinstance(node, Comparison):
        return Q() if without is not None and _of(node) == without else _comparison(node, scope)
    if isinstance(node, Not):
        return ~condition(node.part, scope)
    found = Q()
    if isinstance(node, Or):
        for part in node.parts:
            found |= condition(part, scope)
        return found
    together = logged(node, scope)
    for key, rows in together.items():
        found &= Q() if key == without else Q(pk__in=rows.values("run_id"))
    for part in node.parts:
        found &= Q() if _of(part) in together else condition(part, scope)
    return found


def names(node: Node | None) -> frozenset[str]:
    """The attributes that are compared."""
    if node is None:
        return frozenset()
    if isinstance(node, Comparison):
        return frozenset({node.key.name}) if node.key.kind is Kind.ATTRIBUTE else frozenset()
    parts = (node.part,) if isinstance(node, Not) else node.parts
    return frozenset().union(*(names(part) for part in parts))


def on_row(node: Node, key: Logged, prefix: str) -> Q | None:
    """What a filter says of the row of one key, asked through a join of that name; None where a join would
    ask another thing."""
    found = Q()
    for part in node.parts if isinstance(node, And) else (node,):
        if _of(part) == key and isinstance(part, Comparison) and part.value is not None:
            found &= _CONDITIONS[part.key.kind](part)
    return _prefixed(found, prefix)


def _prefixed(found: Q, prefix: str) -> Q | None:
    if found.negated:
        # Of a relation to many rows Django takes "not" as "no row".
        return None
    parts: list[Q | tuple[str, Any]] = []
    for child in found.children:
        # Nothing here but Qs and pairs: what `_CONDITIONS` are made of.
        name, value = ("", child) if isinstance(child, Q) else cast("tuple[str, Any]", child)
        part = _prefixed(value, prefix) if not name else (f"{prefix}__{name}", value)
        if part is None:
            return None
        parts.append(part)
    return Q(*parts, _connector=found.connector)


def logged(node: Node, scope: Scope) -> dict[Logged, QuerySet[Any]]:
    """What a run must have logged for this to be true: of each key the row; all that is said of one is asked
    of it at once."""
    found: dict[Logged, QuerySet[Any]] = {}
    for part in node.parts if isinstance(node, And) else (node,):
        key = _of(part)
        if key is not None and isinstance(part, Comparison):
            rows = found[key] if key in found else rows_of(part.key, scope)
            found[key] = rows if part.value is None else rows.filter(_CONDITIONS[part.key.kind](part))
    return found


def _of(node: Node) -> Logged | None:
    if not isinstance(node, Comparison) or node.operator == "IS NULL" or node.key.kind not in _ROWS:
        return None
    return node.key.kind, node.key.name


def rows_of(key: Key, scope: Scope) -> QuerySet[Any]:
    return scope.of(_ROWS[key.kind].objects.filter(key=key.name))  # type: ignore[attr-defined]


def _comparison(node: Comparison, scope: Scope) -> Q:
    if node.key.kind is Kind.ATTRIBUTE:
        return _attribute(node, scope)
    if node.key.kind is Kind.DATASET:
        return _dataset(node)
    if node.operator == "IS NULL":
        return ~Q(pk__in=rows_of(node.key, scope).values("run_id"))
    (found,) = logged(node, scope).values()
    return Q(pk__in=found.values("run_id"))


def _metric(node: Comparison) -> Q:
    column = f"{node.key.part}_value"
    value = float(node.value)  # type: ignore[arg-type]
    if math.isnan(value):
        # As a number would: nothing but another than NaN is asked for sensibly, and = finds the runs that
        # went astray.
        found = Q(**{f"{column}__isnull": True})
        return found if node.operator == "=" else ~found if node.operator == "!=" else Q(pk__in=())
    if node.operator == "!=":
        return ~Q(**{column: value}) | Q(**{f"{column}__isnull": True})
    return Q(**{f"{column}__{LOOKUPS[node.operator]}": value})


def _text(node: Comparison) -> Q:
    """A param or a tag: what the index holds decides, and the whole value where that is longer."""
    if isinstance(node.value, int | float):
        meets = (
            ~Q(number=node.value)
            if node.operator == "!="
            else Q(**{f"number__{LOOKUPS[node.operator]}": node.value})
        )
        return Q(number__isnull=False) & meets
    positive = OPPOSITE.get(node.operator)
    if positive:
        return ~_equal(node.value)
    if node.operator in ("=", "IN"):
        return _equal(node.value)
    lookup = LOOKUPS[node.operator]
    return Q(Q(short__length__lt=SHORT) & Q(**{f"short__{lookup}": node.value})) | Q(
        Q(short__length__gte=SHORT) & Q(**{f"value__{lookup}": node.value})
    )


def _equal(value: Any) -> Q:
    wanted = value if isinstance(value, tuple) else (value,)
    short = [text for text in wanted if len(text) < SHORT]
    found = Q(short=short[0]) if len(short) == 1 else Q(short__in=short)
    for text in wanted:
        if len(text) >= SHORT:
            found |= Q(short=text[:SHORT], value=text)
    return found


_ROWS: dict[Kind, type[Model]] = {Kind.METRIC: Metric, Kind.PARAM: Param, Kind.TAG: RunTag}
_CONDITIONS: dict[Kind, Callable[[Comparison], Q]] = {
    Kind.METRIC: _metric,
    Kind.PARAM: _text,
    Kind.TAG: _text,
}


def _dataset(node: Comparison) -> Q:
    rows = RunInput.objects.alias(context=Cast(KT(f"tags__{CONTEXT}"), TextField()))
    return Q(pk__in=rows.filter(_compared(node.key.name, node, node.value)).values("run_id"))


def _attribute(node: Comparison, scope: Scope) -> Q:
    name, column = node.key.name, attributes.column(node.key.name)
    if node.key.type is Type.FLAG:
        found = attributes.flag(name, scope.user_id)
        return found if (node.operator == "=") == bool(node.value) else ~found
    if node.key.type is Type.WORD:
        return Q(**{f"{column}__in": _words(node)})
    if node.value is None:
        return Q(**{f"{column}__isnull": node.operator == "IS NULL"})
    if isinstance(node.value, tuple):
        found = _compared(column, node, tuple(attributes.stored(name, item) for item in node.value))
    else:
        found = _compared(column, node, attributes.stored(name, node.value))
    return found & Q(**{f"{column}__isnull": False}) if name in attributes.NULLABLE else found


def _compared(column: str, node: Comparison, value: Any) -> Q:
    positive = OPPOSITE.get(node.operator)
    if positive:
        return ~Q(**{f"{column}__{LOOKUPS[positive]}": value})
    return Q(**{f"{column}__{LOOKUPS[node.operator]}": value})


def _words(node: Comparison) -> list[str]:
    """Which of the few values an attribute may have are meant; in any case, for who writes `failed`."""
    known = attributes.words(node.key.name)
    wanted = node.value if isinstance(node.value, tuple) else (node.value,)
    is_negative = node.operator in OPPOSITE
    if node.operator in ("LIKE", "ILIKE"):
        any_case = node.operator == "ILIKE"
        named = [word for word in known if patterns.matches(str(node.value), word, any_case=any_case)]
        meant = {value for word in named for value in known[word]}
    else:
        folded = {word.lower(): values for word, values in known.items()}
        if node.key.name == "state":
            folded |= attributes.GROUPS
        meant = {value for word in wanted for value in folded.get(str(word).lower(), ())}
    every = {value for values in known.values() for value in values}
    return sorted(every - meant if is_negative else meant)
