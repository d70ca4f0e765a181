"""The filters and orders of experiments, logged models, registered models and versions: comparisons joined by
AND, asked of rows that are in memory. Pure."""

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
Value = str | float | tuple[str, ...] | None


class ValueType(Enum):
    """What an attribute is. A whole number may stand in quotes, as MLflow's clients write a version's."""

    TEXT = "text in quotes"
    NUMBER = "a number"
    WHOLE = "a whole number"


@dataclass(frozen=True)
class Condition:
    """`entity`: attributes, tags, params or metrics."""

    entity: str
    key: str
    operator: str
    value: Value

    def matches(self, actual: str | float | None) -> bool:
        """Of what is not there only IS NULL holds."""
        if self.value is None:
            return (actual is None) is (self.operator == "IS NULL")
        return actual is not None and _COMPARE[self.operator](actual, self.value)


@dataclass(frozen=True)
class AttributeOrder:
    key: str
    descending: bool


@dataclass(frozen=True)
class ConditionGrammar:
    """`orders`: attributes to order by; `entities`: what keys are of, by all its names."""

    attributes: Mapping[str, ValueType]
    orders: Collection[str]
    entities: Mapping[str, str] = field(default_factory=lambda: ATTRIBUTES_AND_TAGS)

    def parse_conditions(self, text: str) -> list[Condition]:
        """Raises MlflowError, which points at the character."""
        try:
            return list(_ConditionParser(self, text, "filter").all())
        except FilterError as error:
            raise MlflowError(INVALID, f"Invalid {error.field}: {error}") from error

    def parse_orders(self, texts: Sequence[str]) -> list[AttributeOrder]:
        """Such as `name ASC`, each attribute once; raises MlflowError."""
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
        while self.word("AND"):
            yield self._condition()
        self.end("AND")

    def order(self) -> AttributeOrder:
        at = self.next.at
        entity, key = self._key(self._grammar.orders)
        if entity != "attributes":
            self.refuse(f"{entity} give no order; use {', '.join(self._grammar.orders)}", at)
        descending = self.word("ASC", "DESC") == "DESC"
        self.end("ASC or DESC")
        return AttributeOrder(key, descending)

    def _condition(self) -> Condition:
        entity, key = self._key(self._grammar.attributes)
        value_type, at = self._grammar.type_of(entity, key), self.next.at
        operators = _TEXTS if value_type is ValueType.TEXT else _NUMBERS
        operator = self.operator(", ".join(operators))
        if operator not in operators:
            self.refuse(f"{key} cannot be compared by {operator}; use {', '.join(operators)}", at)
        return Condition(entity, key, operator, self._value(operator, value_type))

    def _key(self, attributes: Collection[str]) -> tuple[str, str]:
        token, allowed = self.next, ", ".join(attributes)
        entity = self._grammar.entities.get(token.prefix) if token.kind == "key" else "attributes"
        if token.kind not in ("key", "word", "ticks", "string"):
            self.expected(f"one of {allowed}, or a key such as tags.team")
        if entity is None:
            self.refuse(
                f"{token.prefix!r} is no kind of key; use "
                f"{', '.join(sorted(set(self._grammar.entities.values())))}"
            )
        if entity == "attributes" and token.text not in attributes:
            self.refuse(f"{token.text!r} cannot be asked for; use {allowed}")
        self.take()
        return entity, token.text

    def _value(self, operator: str, value_type: ValueType) -> Value:
        if operator in ("IS NULL", "IS NOT NULL"):
            return None
        if operator not in ("IN", "NOT IN"):
            return self._scalar(value_type)
        if not self.mark("("):
            self.expected("( before the list of values")
        values = [self._quoted()]
        while self.mark(","):
            values.append(self._quoted())
        if not self.mark(")"):
            self.expected(", or )")
        return tuple(values)

    def _scalar(self, value_type: ValueType) -> str | float:
        if value_type is ValueType.TEXT:
            return self._quoted()
        token = self.next
        if value_type is ValueType.WHOLE and token.kind in ("number", "string") and _WHOLE.fullmatch(token.text):
            return int(self.take().text)
        if value_type is ValueType.WHOLE or token.kind != "number":
            self.expected(value_type.value)
        return float(self.take().text)

    def _quoted(self) -> str:
        if self.next.kind != "string":
            self.expected(ValueType.TEXT.value)
        return self.take().text


def sort_rows(rows: list[Any], keys: Sequence[tuple[Callable[[Any], Any], bool]]) -> list[Any]:
    """By these keys, the first before the others; None comes last, also where the key descends."""
    for value_of, descending in reversed(keys):
        present = [row for row in rows if value_of(row) is not None]
        rest = [row for row in rows if value_of(row) is None]
        rows = [*sorted(present, key=value_of, reverse=descending), *rest]
    return rows
