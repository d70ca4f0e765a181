"""The small filters of experiments and logged models: comparisons joined by AND, asked of rows that are in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracking.mlflow.errors import INVALID, MlflowError
from tracking.search.errors import FilterError
from tracking.search.patterns import matches
from tracking.search.tokens import Token, tokens

NUMBERS = ("=", "!=", ">", ">=", "<", "<=")
TEXTS = ("=", "!=", "LIKE", "ILIKE", "IN", "NOT IN", "IS NULL", "IS NOT NULL")
Value = str | float | tuple[str, ...] | None


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda told, value: told == value,
    "!=": lambda told, value: told != value,
    ">": lambda told, value: told > value,
    ">=": lambda told, value: told >= value,
    "<": lambda told, value: told < value,
    "<=": lambda told, value: told <= value,
    "IN": lambda told, value: told in value,
    "NOT IN": lambda told, value: told not in value,
    "LIKE": lambda told, value: matches(value, told),
    "ILIKE": lambda told, value: matches(value, told, any_case=True),
}


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
class Grammar:
    """`attributes`: which there are, and whether they are numbers; `entities`: by all their names."""

    attributes: Mapping[str, bool]
    entities: Mapping[str, str]

    def conditions(self, text: str) -> list[Condition]:
        """Raises MlflowError, which points at the character."""
        try:
            return list(_Reader(self, text).all())
        except FilterError as error:
            raise MlflowError(INVALID, f"Invalid {error.field}: {error}") from error

    def order(self, text: str) -> tuple[str, bool]:
        """An attribute, and whether it descends."""
        try:
            return _Reader(self, text, "order_by").order()
        except FilterError as error:
            raise MlflowError(INVALID, f"Invalid {error.field}: {error}") from error

    def is_number(self, entity: str, key: str) -> bool:
        return entity == "metrics" or (entity == "attributes" and self.attributes[key])


class _Reader:
    def __init__(self, grammar: Grammar, text: str, field: str = "filter") -> None:
        self._grammar, self._text, self._field = grammar, text.replace("\x00", " "), field
        self._tokens = tokens(self._text, field)
        self._at = 0

    def all(self) -> list[Condition]:
        found: list[Condition] = []
        if self._next.kind == "end":
            return found
        while True:
            found.append(self._condition())
            if self._next.kind == "end":
                return found
            if not self._word("AND"):
                raise self._expected("AND, or the end")

    def order(self) -> tuple[str, bool]:
        entity, key = self._key()
        if entity != "attributes":
            raise self._expected(f"one of {', '.join(self._grammar.attributes)}")
        descends = self._word("DESC") or (self._word("ASC") and False)
        if self._next.kind != "end":
            raise self._expected("ASC, DESC or the end")
        return key, bool(descends)

    def _condition(self) -> Condition:
        entity, key = self._key()
        is_number = self._grammar.is_number(entity, key)
        operator = self._operator()
        if operator not in (NUMBERS if is_number else TEXTS):
            self._at -= 1
            raise self._expected(f"one of {', '.join(NUMBERS if is_number else TEXTS)}")
        if operator in ("IS NULL", "IS NOT NULL"):
            return Condition(entity, key, operator, None)
        if operator in ("IN", "NOT IN"):
            return Condition(entity, key, operator, self._list())
        return Condition(entity, key, operator, self._number() if is_number else self._string())

    def _key(self) -> tuple[str, str]:
        token = self._next
        entity = self._grammar.entities.get(token.prefix) if token.kind == "key" else "attributes"
        if entity is None or token.kind not in ("key", "word", "ticks", "string"):
            known = ", ".join(sorted(set(self._grammar.entities.values())))
            raise self._expected(f"a key such as name or tags.team, of {known}")
        if entity == "attributes" and token.text not in self._grammar.attributes:
            raise self._expected(f"one of {', '.join(self._grammar.attributes)}")
        self._at += 1
        return entity, token.text

    def _operator(self) -> str:
        token = self._next
        if token.kind == "operator":
            self._at += 1
            return token.text
        for word in ("LIKE", "ILIKE", "IN"):
            if self._word(word):
                return word
        if self._word("NOT"):
            return "NOT IN" if self._word("IN") else self._raise("IN")
        if self._word("IS"):
            negated = self._word("NOT")
            return f"IS {'NOT ' if negated else ''}NULL" if self._word("NULL") else self._raise("NULL")
        return self._raise("a comparison")

    def _list(self) -> tuple[str, ...]:
        self._mark("(")
        found = [self._string()]
        while self._next.text == ",":
            self._at += 1
            found.append(self._string())
        self._mark(")")
        return tuple(found)

    def _string(self) -> str:
        if self._next.kind != "string":
            raise self._expected("text in quotes")
        self._at += 1
        return self._tokens[self._at - 1].text

    def _number(self) -> float:
        if self._next.kind != "number":
            raise self._expected("a number")
        self._at += 1
        return float(self._tokens[self._at - 1].text)

    def _mark(self, mark: str) -> None:
        if self._next.kind != "mark" or self._next.text != mark:
            raise self._expected(mark)
        self._at += 1

    def _word(self, word: str) -> bool:
        if self._next.kind != "word" or self._next.text.upper() != word:
            return False
        self._at += 1
        return True

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _raise(self, wanted: str) -> str:
        raise self._expected(wanted)

    def _expected(self, wanted: str) -> FilterError:
        return FilterError(f"Expected {wanted}", self._next.at, self._text, self._field)


def ordered(rows: list[Any], keys: Sequence[tuple[Callable[[Any], Any], bool]]) -> list[Any]:
    """By these keys, the first before the others; None comes last, also where the key descends."""
    for value_of, descends in reversed(keys):
        there = [row for row in rows if value_of(row) is not None]
        rest = [row for row in rows if value_of(row) is None]
        rows = [*sorted(there, key=value_of, reverse=descends), *rest]
    return rows
