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
from tracking.search.token_stream import Cursor

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
    "IN": lambda told, value: told in value,
    "NOT IN": lambda told, value: told not in value,
    "LIKE": lambda told, value: matches(value, told),
    "ILIKE": lambda told, value: matches(value, told, any_case=True),
}
ATTRIBUTES_AND_TAGS = {
    "attribute": "attributes",
    "attributes": "attributes",
    "attr": "attributes",
    "tag": "tags",
    "tags": "tags",
}
Value = str | float | tuple[str, ...] | None


class Is(Enum):
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

    def holds(self, told: str | float | None) -> bool:
        """Of what is not there only IS NULL holds."""
        if self.value is None:
            return (told is None) is (self.operator == "IS NULL")
        return told is not None and _COMPARE[self.operator](told, self.value)


@dataclass(frozen=True)
class Order:
    key: str
    descends: bool


@dataclass(frozen=True)
class Grammar:
    """`orders`: attributes to order by; `entities`: what keys are of, by all its names."""

    attributes: Mapping[str, Is]
    orders: Collection[str]
    entities: Mapping[str, str] = field(default_factory=lambda: ATTRIBUTES_AND_TAGS)

    def conditions(self, text: str) -> list[Condition]:
        """Raises MlflowError, which points at the character."""
        try:
            return list(_Reader(self, text, "filter").all())
        except FilterError as error:
            raise MlflowError(INVALID, f"Invalid {error.field}: {error}") from error

    def ordered_by(self, texts: Sequence[str]) -> list[Order]:
        """Such as `name ASC`, each attribute once; raises MlflowError."""
        found: dict[str, Order] = {}
        try:
            for text in texts:
                order = _Reader(self, text, "order_by").order()
                if order.key in found:
                    raise FilterError(f"{order.key} is given twice", 0, text, "order_by")
                found[order.key] = order
        except FilterError as error:
            raise MlflowError(INVALID, f"Invalid {error.field}: {error}") from error
        return list(found.values())

    def type_of(self, entity: str, key: str) -> Is:
        if entity == "attributes":
            return self.attributes[key]
        return Is.NUMBER if entity == "metrics" else Is.TEXT


class _Reader(Cursor):
    def __init__(self, grammar: Grammar, text: str, field: str) -> None:
        super().__init__(text, field)
        self._grammar = grammar

    def all(self) -> Iterable[Condition]:
        if self.next.kind == "end":
            return
        yield self._condition()
        while self.word("AND"):
            yield self._condition()
        self.end("AND")

    def order(self) -> Order:
        at = self.next.at
        entity, key = self._key(self._grammar.orders)
        if entity != "attributes":
            self.refuse(f"{entity} give no order; use {', '.join(self._grammar.orders)}", at)
        descends = self.word("ASC", "DESC") == "DESC"
        self.end("ASC or DESC")
        return Order(key, descends)

    def _condition(self) -> Condition:
        entity, key = self._key(self._grammar.attributes)
        wanted, at = self._grammar.type_of(entity, key), self.next.at
        operators = _TEXTS if wanted is Is.TEXT else _NUMBERS
        operator = self.operator(", ".join(operators))
        if operator not in operators:
            self.refuse(f"{key} cannot be compared by {operator}; use {', '.join(operators)}", at)
        return Condition(entity, key, operator, self._value(operator, wanted))

    def _key(self, attributes: Collection[str]) -> tuple[str, str]:
        token, known = self.next, ", ".join(attributes)
        entity = self._grammar.entities.get(token.prefix) if token.kind == "key" else "attributes"
        if token.kind not in ("key", "word", "ticks", "string"):
            self.expected(f"one of {known}, or a key such as tags.team")
        if entity is None:
            self.refuse(
                f"{token.prefix!r} is no kind of key; use "
                f"{', '.join(sorted(set(self._grammar.entities.values())))}"
            )
        if entity == "attributes" and token.text not in attributes:
            self.refuse(f"{token.text!r} cannot be asked for; use {known}")
        self.take()
        return entity, token.text

    def _value(self, operator: str, wanted: Is) -> Value:
        if operator in ("IS NULL", "IS NOT NULL"):
            return None
        if operator not in ("IN", "NOT IN"):
            return self._scalar(wanted)
        if not self.mark("("):
            self.expected("( before the list of values")
        found = [self._quoted()]
        while self.mark(","):
            found.append(self._quoted())
        if not self.mark(")"):
            self.expected(", or )")
        return tuple(found)

    def _scalar(self, wanted: Is) -> str | float:
        if wanted is Is.TEXT:
            return self._quoted()
        token = self.next
        if wanted is Is.WHOLE and token.kind in ("number", "string") and _WHOLE.fullmatch(token.text):
            return int(self.take().text)
        if wanted is Is.WHOLE or token.kind != "number":
            self.expected(wanted.value)
        return float(self.take().text)

    def _quoted(self) -> str:
        if self.next.kind != "string":
            self.expected(Is.TEXT.value)
        return self.take().text


def ordered(rows: list[Any], keys: Sequence[tuple[Callable[[Any], Any], bool]]) -> list[Any]:
    """By these keys, the first before the others; None comes last, also where the key descends."""
    for value_of, descends in reversed(keys):
        there = [row for row in rows if value_of(row) is not None]
        rest = [row for row in rows if value_of(row) is None]
        rows = [*sorted(there, key=value_of, reverse=descends), *rest]
    return rows
