"""Compiles a filter tree to a condition on runs. Logged data is matched by subqueries on the index
(experiment, key, value, run)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from django.db.models import Model, Q, QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from jobs.models import Experiment, RunTag
from tracking.models import Metric, Param, RunInput
from tracking.search import attributes, patterns
from tracking.search.tree import And, Comparison, Key, Node, Not, Or
from tracking.search.vocabulary import AttributeType, KeyKind
from workspaces.models import User

# Characters of a value that the index contains.
SHORT = 200
# KeyKind and name of a logged key.
LoggedKey = tuple[KeyKind, str]
# `like` and `ilike` are the lookups of `search.patterns`, which mean the same on every database.
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
# Attributes that are names of other rows, and the columns with the ids of these.
_NAMED = {"user_id": "created_by", "experiment": "experiment"}
MAX_IDS = 500


@dataclass(frozen=True)
class Scope:
    """Limits of a search: its experiments, the person that `mine` and `starred` refer to, and candidate runs
    (None: all)."""

    experiments: tuple[int, ...]
    user_id: int | None = None
    runs: tuple[str, ...] | None = None

    def restrict(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Returns the rows of logged data within the scope."""
        if self.runs is not None:
            # The candidates come from queries within these experiments, so the experiments need no second
            # check.
            return rows.filter(run_id__in=self.runs)
        return rows.filter(self.experiment_condition())

    def experiment_condition(self) -> Q:
        """Returns the condition on experiments. Equality, for a single one, keeps the index order usable."""
        one = len(self.experiments) == 1
        return Q(experiment_id=self.experiments[0]) if one else Q(experiment_id__in=self.experiments)


def compile_filter(node: Node, scope: Scope, *, without: LoggedKey | None = None) -> Q:
    """Returns the condition on Run; it needs the aliases of `attributes.computed_columns`.

    Logic is two-valued: a run without the key does not match.

    Comparisons of the key `without` are left out; `row_condition` returns them.
    """
    if isinstance(node, Comparison):
        return Q() if without is not None and _key_of(node) == without else _comparison(node, scope)
    # `without` is not passed on: only comparisons that AND joins at the top must hold for every result, and
    # only these can move into a join.
    if isinstance(node, Not):
        return ~compile_filter(node.part, scope)
    result = Q()
    if isinstance(node, Or):
        for part in node.parts:
            result |= compile_filter(part, scope)
        return result
    # One subquery for each key: both sides of a range such as `lr > 0.001 AND lr <= 0.1` then use one index
    # scan.
    rows_by = rows_by_key(node, scope)
    for key, rows in rows_by.items():
        result &= Q() if key == without else Q(pk__in=rows.values("run_id"))
    for part in node.parts:
        result &= Q() if _key_of(part) in rows_by else compile_filter(part, scope)
    return result


def attribute_names(node: Node | None) -> frozenset[str]:
    """Returns the names of the attributes in the filter."""
    if node is None:
        return frozenset()
    if isinstance(node, Comparison):
        return frozenset({node.key.name}) if node.key.kind is KeyKind.ATTRIBUTE else frozenset()
    parts = (node.part,) if isinstance(node, Not) else node.parts
    return frozenset().union(*(attribute_names(part) for part in parts))


def row_condition(node: Node, key: LoggedKey, prefix: str) -> Q | None:
    """Returns the filter's condition on the row of one key, for the join `prefix`; None if a join would
    change its meaning."""
    result = Q()
    for part in node.parts if isinstance(node, And) else (node,):
        if _key_of(part) == key and isinstance(part, Comparison) and part.value is not None:
            result &= _CONDITIONS[part.key.kind](part)
    return _prefixed(result, prefix)


def _prefixed(condition: Q, prefix: str) -> Q | None:
    if condition.negated:
        # For a to-many relation Django compiles "not" as "no such row".
        return None
    parts: list[Q | tuple[str, object]] = []
    for child in condition.children:
        # Children are Qs or (lookup, value) pairs, as built by `_CONDITIONS`.
        name, value = ("", child) if isinstance(child, Q) else cast("tuple[str, Any]", child)
        part = _prefixed(value, prefix) if not name else (f"{prefix}__{name}", value)
        if part is None:
            return None
        parts.append(part)
    return Q(*parts, _connector=condition.connector)


def rows_by_key(node: Node, scope: Scope) -> dict[LoggedKey, QuerySet[Any]]:
    """Returns the rows that a run must have for the filter to be true, by key. All conditions on one key
    apply to the same row."""
    result: dict[LoggedKey, QuerySet[Any]] = {}
    for part in node.parts if isinstance(node, And) else (node,):
        key = _key_of(part)
        if key is not None and isinstance(part, Comparison):
            rows = result[key] if key in result else rows_for_key(part.key, scope)
            result[key] = rows if part.value is None else rows.filter(_CONDITIONS[part.key.kind](part))
    return result


def _key_of(node: Node) -> LoggedKey | None:
    # IS NULL selects runs without a row, so it cannot be a condition on a row.
    if not isinstance(node, Comparison) or node.operator == "IS NULL" or node.key.kind not in _MODELS:
        return None
    return node.key.kind, node.key.name


def rows_for_key(key: Key, scope: Scope) -> QuerySet[Any]:
    return scope.restrict(_MODELS[key.kind].objects.filter(key=key.name))  # type: ignore[attr-defined]


def _comparison(node: Comparison, scope: Scope) -> Q:
    if node.key.kind is KeyKind.ATTRIBUTE:
        return _attribute(node, scope)
    if node.key.kind is KeyKind.DATASET:
        return _dataset(node)
    if node.operator == "IS NULL":
        return ~Q(pk__in=rows_for_key(node.key, scope).values("run_id"))
    (matches,) = rows_by_key(node, scope).values()
    return Q(pk__in=matches.values("run_id"))


def _metric(node: Comparison) -> Q:
    column = f"{node.key.part}_value"
    value = float(node.value)  # type: ignore[arg-type]
    if math.isnan(value):
        # NaN is stored as null. `= nan` finds diverged runs; comparisons other than = and != match nothing.
        is_nan = Q(**{f"{column}__isnull": True})
        return is_nan if node.operator == "=" else ~is_nan if node.operator == "!=" else Q(pk__in=())
    # NaN, which is stored as null, is unequal to every number.
    if node.operator == "!=":
        return ~Q(**{column: value}) | Q(**{f"{column}__isnull": True})
    return Q(**{f"{column}__{LOOKUPS[node.operator]}": value})


def _text(node: Comparison) -> Q:
    """Returns the condition on a param or tag: on the indexed prefix, and on the full value where it is
    longer."""
    # A number compares params as numbers. Params that are other text have no `number` and do not match.
    if isinstance(node.value, int | float):
        number_condition = (
            ~Q(number=node.value)
            if node.operator == "!="
            else Q(**{f"number__{LOOKUPS[node.operator]}": node.value})
        )
        return Q(number__isnull=False) & number_condition
    positive = OPPOSITE.get(node.operator)
    if positive:
        return ~_equal(node.value)
    if node.operator in ("=", "IN"):
        return _equal(node.value)
    lookup = LOOKUPS[node.operator]
    # Only values that fill the indexed prefix can be longer than it, so the full text is read for those
    # alone.
    return Q(Q(short__length__lt=SHORT) & Q(**{f"short__{lookup}": node.value})) | Q(
        Q(short__length__gte=SHORT) & Q(**{f"value__{lookup}": node.value})
    )


def _equal(value: object) -> Q:
    texts = value if isinstance(value, tuple) else (value,)
    # A value that is shorter than the prefix is stored in it as a whole. For longer ones the prefix finds the
    # rows by index, and the full text decides.
    short = [text for text in texts if len(text) < SHORT]
    condition = Q(short=short[0]) if len(short) == 1 else Q(short__in=short)
    for text in texts:
        if len(text) >= SHORT:
            condition |= Q(short=text[:SHORT], value=text)
    return condition


_MODELS: dict[KeyKind, type[Model]] = {KeyKind.METRIC: Metric, KeyKind.PARAM: Param, KeyKind.TAG: RunTag}
_CONDITIONS: dict[KeyKind, Callable[[Comparison], Q]] = {
    KeyKind.METRIC: _metric,
    KeyKind.PARAM: _text,
    KeyKind.TAG: _text,
}


def _dataset(node: Comparison) -> Q:
    # KT splits only at `__`, so the dots of the key stay part of it.
    rows = RunInput.objects.alias(context=Cast(KT(f"tags__{CONTEXT}"), TextField()))
    return Q(pk__in=rows.filter(_compare(node.key.name, node, node.value)).values("run_id"))


def _attribute(node: Comparison, scope: Scope) -> Q:
    name, column = node.key.name, attributes.column_name(node.key.name)
    if node.key.type is AttributeType.FLAG:
        condition = attributes.flag_condition(name, scope.user_id)
        return condition if (node.operator == "=") == bool(node.value) else ~condition
    if node.key.type is AttributeType.WORD:
        return Q(**{f"{column}__in": _stored_words(node)})
    if node.value is None:
        return Q(**{f"{column}__isnull": node.operator == "IS NULL"})
    if name in _NAMED and node.operator not in OPPOSITE:
        ids = _ids_named(node, scope)
        if len(ids) <= MAX_IDS:
            return Q(**{f"{_NAMED[name]}__in": ids})
    if isinstance(node.value, tuple):
        condition = _compare(column, node, tuple(attributes.column_value(name, item) for item in node.value))
    else:
        condition = _compare(column, node, attributes.column_value(name, node.value))
    # Django compiles a negated comparison of a nullable column so that null matches; a run without the
    # attribute must not match `!=`.
    return condition & Q(**{f"{column}__isnull": False}) if name in attributes.NULLABLE else condition


def _ids_named(node: Comparison, scope: Scope) -> list[int]:
    """Returns the people or experiments whose name matches, at most one more than MAX_IDS. By their ids the
    database knows how many runs each has; by a name it assumes the mean, and reads all runs for one of
    nobody."""
    rows: QuerySet[Any]
    if node.key.name == "user_id":
        rows, name = User.objects.all(), "username"
    else:
        rows, name = Experiment.objects.filter(pk__in=scope.experiments), "name"
    matching = rows.filter(**{f"{name}__{LOOKUPS[node.operator]}": node.value}).order_by()
    return list(matching.values_list("pk", flat=True)[: MAX_IDS + 1])


def _compare(column: str, node: Comparison, value: object) -> Q:
    positive = OPPOSITE.get(node.operator)
    if positive:
        return ~Q(**{f"{column}__{LOOKUPS[positive]}": value})
    return Q(**{f"{column}__{LOOKUPS[node.operator]}": value})


def _stored_words(node: Comparison) -> list[str]:
    """Returns the stored values that the comparison selects; the case of words does not matter."""
    by_word = attributes.word_values(node.key.name)
    words = node.value if isinstance(node.value, tuple) else (node.value,)
    is_negative = node.operator in OPPOSITE
    # The words are few, so a pattern is matched here. The database could not do it: one word of MLflow stands
    # for several states.
    if node.operator in ("LIKE", "ILIKE"):
        any_case = node.operator == "ILIKE"
        matching = [word for word in by_word if patterns.matches(str(node.value), word, any_case=any_case)]
        stored = {value for word in matching for value in by_word[word]}
    else:
        folded = {word.lower(): values for word, values in by_word.items()}
        if node.key.name == "state":
            folded |= attributes.GROUPS
        stored = {value for word in words for value in folded.get(str(word).lower(), ())}
    all_stored = {value for values in by_word.values() for value in values}
    return sorted(all_stored - stored if is_negative else stored)
