"""MLflow's grammar of filters and orders for models and versions: comparisons joined by AND. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NoReturn

from tracking.search.errors import FilterError
from tracking.search.patterns import matches
from tracking.search.tokens import Token, tokens

TEXT, NUMBER = "text", "number"
OPERATORS = {TEXT: ("=", "!=", "LIKE", "ILIKE", "IN", "NOT IN"), NUMBER: ("=", "!=", ">", ">=", "<", "<=")}
WHOLE = re.compile(r"[+-]?[0-9]{1,17}")
TAG_OPERATORS = ("=", "!=", "LIKE", "ILIKE")
TAG_PREFIXES, ATTRIBUTE_PREFIXES = ("tag", "tags"), ("attribute", "attributes", "attr")
PROMPT = "mlflow.prompt.is_prompt"
Value = str | int | tuple[str, ...]
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq, "!=": ne, ">": gt, ">=": ge, "<": lt, "<=": le, "IN": lambda have, want: have in want,
    "NOT IN": lambda have, want: have not in want, "LIKE": lambda have, want: matches(want, have),
    "ILIKE": lambda have, want: matches(want, have, any_case=True),
}


@dataclass(frozen=True)
class Comparison:
    key: str
    operator: str
    value: Value
    is_tag: bool = False

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Of a row with its attributes and `tags`; what a row lacks is never true, but a prompt is what nothing here is."""
        have = row["tags"].get(self.key) if self.is_tag else row[self.key]
        if self.is_tag and self.key == PROMPT and have is None:
            have = "false"
        return have is not None and _COMPARE[self.operator](have, self.value)


@dataclass(frozen=True)
class Order:
    key: str
    descending: bool


def parse(text: str, attributes: Mapping[str, str]) -> list[Comparison]:
    """`attributes`: name -> text or number. Raises FilterError, which points at the character."""
    reader = _Reader(text, "filter", attributes)
    found: list[Comparison] = []
    while reader.next.kind != "end":
        if found and not reader.word("AND"):
            reader.expected("AND, or the end")
        found.append(reader.comparison())
    return found


def parse_orders(texts: Sequence[str], keys: Sequence[str]) -> list[Order]:
    """Such as `name ASC`; raises FilterError."""
    found: list[Order] = []
    for text in texts:
        reader = _Reader(text, "order_by", dict.fromkeys(keys, TEXT))
        key, _ = reader.key()
        descending = not reader.word("ASC") and bool(reader.word("DESC"))
        if reader.next.kind != "end":
            reader.expected("ASC, DESC, or the end")
        if key in [order.key for order in found]:
            raise FilterError(f"{key} is given twice", 0, text, "order_by")
        found.append(Order(key, descending))
    return found


class _Reader:
    def __init__(self, text: str, field: str, attributes: Mapping[str, str]) -> None:
        self._text = text.replace("\x00", " ")
        self._field = field
        self._attributes = attributes
        self._tokens = tokens(self._text, field)
        self._at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def comparison(self) -> Comparison:
        key, is_tag = self.key()
        kind = TEXT if is_tag else self._attributes[key]
        operators = TAG_OPERATORS if is_tag else OPERATORS[kind]
        at = self.next.at
        operator = self._operator(operators)
        if operator not in operators:
            self.refuse(f"{key} cannot be compared by {operator}; use {', '.join(operators)}", at)
        return Comparison(key, operator, self._value(kind, operator), is_tag)

    def key(self) -> tuple[str, bool]:
        """The name, and whether it is a tag's."""
        token = self.next
        is_tag = token.kind == "key" and token.prefix in TAG_PREFIXES
        if token.kind == "key" and token.prefix not in (*TAG_PREFIXES, *ATTRIBUTE_PREFIXES):
            self.refuse(f"{token.prefix!r} is no kind of key; use attribute or tags", token.at)
        if token.kind not in ("key", "word", "ticks", "string"):
            self.expected(f"one of {', '.join(self._attributes)}, or tags.<name>")
        if is_tag and self._field == "order_by":
            self.refuse("Tags give no order", token.at)
        if not is_tag and token.text not in self._attributes:
            self.refuse(f"{token.text!r} cannot be asked for; use {', '.join(self._attributes)}, or tags.<name>", token.at)
        self._at += 1
        return token.text, is_tag

    def _operator(self, operators: Sequence[str]) -> str:
        token = self.next
        if token.kind == "operator":
            self._at += 1
            return token.text
        if self.word("NOT"):
            return f"NOT {self.word('IN') or self.expected('IN')}"
        return self.word("LIKE", "ILIKE", "IN") or self.expected(", ".join(operators))

    def _value(self, kind: str, operator: str) -> Value:
        if operator not in ("IN", "NOT IN"):
            return self._scalar(kind)
        self._mark("(")
        found = [str(self._scalar(kind))]
        while self.next.text == ",":
            self._mark(",")
            found.append(str(self._scalar(kind)))
        self._mark(")")
        return tuple(found)

    def _scalar(self, kind: str) -> str | int:
        token = self.next
        if kind == NUMBER:
            if token.kind not in ("number", "string") or not WHOLE.fullmatch(token.text):
                self.expected("a whole number")
        elif token.kind != "string":
            self.expected("text in quotes")
        self._at += 1
        return int(token.text) if kind == NUMBER else token.text

    def word(self, *words: str) -> str:
        """The next token in capitals where it is one of `words`, which is then read; else nothing."""
        token = self.next
        if token.kind != "word" or token.text.upper() not in words:
            return ""
        self._at += 1
        return token.text.upper()

    def _mark(self, mark: str) -> None:
        if self.next.kind != "mark" or self.next.text != mark:
            self.expected(mark)
        self._at += 1

    def expected(self, wanted: str) -> NoReturn:
        token = self.next
        found = "it ends here" if token.kind == "end" else f"{self._text[token.at : token.at + 40].split()[0]!r} stands here"
        self.refuse(f"Expected {wanted}; {found}")

    def refuse(self, message: str, at: int | None = None) -> NoReturn:
        raise FilterError(message, self.next.at if at is None else at, self._text, self._field)
