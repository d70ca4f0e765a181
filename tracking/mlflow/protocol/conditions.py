"""Filters and orders of experiments, logged models, registered models and versions: comparisons joined by
AND, evaluated on rows in memory. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.search.errors import FilterError
from tracking.search.patterns import matches
from tracking.search.token_stream import TokenStream

_NUMBERS = ("=", "!=", ">", ">=", "<", "<=")
_TEXTS = ("=", "!=", "LIKE", "ILIKE", "IN", "NOT IN", "IS NULL", "IS NOT NULL")
_WHOLE = re.compile(r"[+-]?[0-9]{1,17}")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq,
    "!=": ne,
    ">": gt,
    ">=": ge,
    "<": lt,
    "<=": le,
    "IN": lambda actual, value: actual in value,
    "NOT IN": lambda actual, value: actual not in value,
    "LIKE": lambda actual, value: matches(value, actual),
    "ILIKE": lambda actual, value: matches(value, actual, any_case=True),
}
ATTRIBUTES_AND_TAGS = {
    "attribute": "attributes",
    "attributes": "attributes",
    "attr": "attributes",
    "tag": "tags",
    "tags": "tags",
}
ConditionValue = str | float | tuple[str, ...] | None


class ValueType(Enum):
    """Type of an attribute; the value describes it in messages. A WHOLE may be quoted: MLflow's clients quote
    version numbers."""

    TEXT = "text in quotes"
    NUMBER = "a number"
    WHOLE = "a whole number"


@dataclass(frozen=True)
class Condition:
    """One comparison. `entity` is attributes, tags, params or metrics."""

    entity: str
    key: str
    operator: str
    value: ConditionValue

    def matches(self, actual: str | float | None) -> bool:
        """Returns whether the condition is true of `actual`; only IS NULL is true of None."""
        if self.value is None:
            return (actual is None) is (self.operator == "IS NULL")
        return actual is not None and _COMPARE[self.operator](actual, self.value)


@dataclass(frozen=True)
class AttributeOrder:
    key: str
    descending: bool


@dataclass(frozen=True)
class ConditionGrammar:
    """`attributes`: attributes that can be compared; `orders`: those that rows can be ordered by;
    `entities`: canonical names of key prefixes."""

    attributes: Mapping[str, ValueType]
    orders: Collection[str]
    entities: Mapping[str, str] = field(default_factory=lambda: ATTRIBUTES_AND_TAGS)

    def parse_conditions(self, text: str) -> list[Condition]:
        """Returns the comparisons of a filter. Raises MlflowError, which points at the wrong character."""
        try:
            return list(_ConditionParser(self, text, "filter").all())
        except FilterError as error:
            raise MlflowError(INVALID, f"Invalid {error.field}: {error}") from error

    def parse_orders(self, texts: Sequence[str]) -> list[AttributeOrder]:
        """Returns the orders, such as `name ASC`. Raises MlflowError, also for an attribute that occurs
        twice."""
        by_key: dict[str, AttributeOrder] = {}
        try:
            for text in texts:
                order = _ConditionParser(self, text, "order_by").order()
                if order.key in by_key:
                    raise FilterError(f"{order.key} is given twice", 0, text, "order_by")
                by_key[order.key] = order
        except FilterError as error:
            raise MlflowError(INVALID, f"Invalid {error.field}: {error}") from error
        return list(by_key.values())

    def type_of(self, entity: str, key: str) -> ValueType:
        if entity == "attributes":
            return self.attributes[key]
        return ValueType.NUMBER if entity == "metrics" else ValueType.TEXT


class _ConditionParser(TokenStream):
    def __init__(self, grammar: ConditionGrammar, text: str, field: str) -> None:
        super().__init__(text, field)
        self._grammar = grammar

    def all(self) -> Iterable[Condition]:
        if self.next.kind == "end":
            return
        yield self._condition()
        while self.take_word("AND"):
            yield self._condition()
        self.expect_end("AND")

    def order(self) -> AttributeOrder:
        at = self.next.at
        entity, key = self._key(self._grammar.orders)
        if entity != "attributes":
            self.fail(f"rows cannot be ordered by {entity}; use {', '.join(self._grammar.orders)}", at)
        descending = self.take_word("ASC", "DESC") == "DESC"
        self.expect_end("ASC or DESC")
        return AttributeOrder(key, descending)

    def _condition(self) -> Condition:
        entity, key = self._key(self._grammar.attributes)
        value_type, at = self._grammar.type_of(entity, key), self.next.at
        operators = _TEXTS if value_type is ValueType.TEXT else _NUMBERS
        operator = self.take_operator(", ".join(operators))
        if operator not in operators:
            self.fail(f"{key} cannot be compared by {operator}; use {', '.join(operators)}", at)
        return Condition(entity, key, operator, self._value(operator, value_type))

    def _key(self, attributes: Collection[str]) -> tuple[str, str]:
        token, allowed = self.next, ", ".join(attributes)
        entity = self._grammar.entities.get(token.prefix) if token.kind == "key" else "attributes"
        if token.kind not in ("key", "word", "ticks", "string"):
            self.fail_expected(f"one of {allowed}, or a key such as tags.team")
        if entity is None:
            self.fail(
                f"{token.prefix!r} is not a kind of key; use "
                f"{', '.join(sorted(set(self._grammar.entities.values())))}"
            )
        if entity == "attributes" and token.text not in attributes:
            self.fail(f"{token.text!r} is not an attribute; use {allowed}")
        self.take()
        return entity, token.text

    def _value(self, operator: str, value_type: ValueType) -> ConditionValue:
        if operator in ("IS NULL", "IS NOT NULL"):
            return None
        if operator not in ("IN", "NOT IN"):
            return self._scalar(value_type)
        if not self.take_mark("("):
            self.fail_expected("( before the list of values")
        values = [self._quoted()]
        while self.take_mark(","):
            values.append(self._quoted())
        if not self.take_mark(")"):
            self.fail_expected(", or )")
        return tuple(values)

    def _scalar(self, value_type: ValueType) -> str | float:
        if value_type is ValueType.TEXT:
            return self._quoted()
        token = self.next
        if (
            value_type is ValueType.WHOLE
            and token.kind in ("number", "string")
            and _WHOLE.fullmatch(token.text)
        ):
            return int(self.take().text)
        if value_type is ValueType.WHOLE or token.kind != "number":
            self.fail_expected(value_type.value)
        return float(self.take().text)

    def _quoted(self) -> str:
        if self.next.kind != "string":
            self.fail_expected(ValueType.TEXT.value)
        return self.take().text


def sort_rows(rows: list[Any], keys: Sequence[tuple[Callable[[Any], object], bool]]) -> list[Any]:
    """Returns the rows sorted by (value, descending) keys, the first key first; None sorts last in both
    directions."""
    # Python's sort is stable: sorting by the last key first gives the order by all keys.
    for value_of, descending in reversed(keys):
        present = [row for row in rows if value_of(row) is not None]
        rest = [row for row in rows if value_of(row) is None]
        rows = [*sorted(present, key=value_of, reverse=descending), *rest]
    return rows
