"""Text to tree: MLflow's grammar of filters, and OR, NOT, parentheses, numbers of params, min and max of metrics. Pure.

    any    := all { OR all }            all := one { AND one }        one := NOT one | ( any ) | comparison | flag
    comparison := key operator value | key [NOT] IN ( value, … ) | key IS [NOT] NULL
    key    := [kind .] name | min ( metrics.name ) | max ( metrics.name )
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tracking.search.errors import FilterError
from tracking.search.tokens import Token, tokens
from tracking.search.tree import And, Comparison, Key, Node, Not, Or, OrderBy, Value
from tracking.search.values import listed, value_of
from tracking.search.words import ATTRIBUTES, DATASET_KEYS, KINDS, OPERATORS, OTHER_NAMES, PARTS, Kind, Type

DEEPEST = 40
MOST_COMPARISONS = 100
MOST_ORDERS = 20
NAME = Key(Kind.ATTRIBUTE, "run_name")
NAME_TAG = Key(Kind.TAG, "mlflow.runName")
"""To MLflow's clients a run's name is a tag."""
RESERVED = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "ILIKE", "TRUE", "FALSE"})


def parse(text: str) -> Node | None:
    """None where there is nothing to filter by; raises FilterError."""
    text = text.replace("\x00", " ")
    reader = _Reader(text, "filter")
    if reader.next.kind == "end":
        return None
    found = reader.any_of(0)
    reader.expect_end("AND or OR", "joint")
    return found


def parse_key(text: str) -> Key:
    """`metrics.acc`, `min(metrics.loss)`, `duration`; raises FilterError."""
    reader = _Reader(text.replace("\x00", " "), "column")
    key = reader.key()
    reader.expect_end("nothing else")
    return key


def parse_order(text: str) -> OrderBy:
    """`metrics.acc DESC`, `params.lr`; raises FilterError."""
    reader = _Reader(text.replace("\x00", " "), "order_by")
    key = reader.key()
    if key.kind is Kind.DATASET:
        reader.refuse("Runs cannot be ordered by their data sets", 0)
    direction = reader.word("ASC", "DESC")
    reader.expect_end("ASC or DESC")
    return OrderBy(key, direction == "DESC")


def parse_orders(texts: Sequence[str]) -> list[OrderBy]:
    """Each key once, as MLflow wants it; raises FilterError."""
    found: list[OrderBy] = []
    if len(texts) > MOST_ORDERS:
        raise FilterError(f"More than {MOST_ORDERS} keys to order by; leave some out", 0, "", "order_by")
    for text in texts:
        order = parse_order(text)
        if order.key in [known.key for known in found]:
            raise FilterError(f"{order.key} is given twice", 0, text, "order_by")
        found.append(order)
    return found


class _Reader:
    def __init__(self, text: str, field: str) -> None:
        self._text = text
        self._field = field
        self._tokens = tokens(text, field)
        self._at = 0
        self._comparisons = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def any_of(self, depth: int) -> Node:
        parts = [self._all_of(depth)]
        while self.word("OR"):
            parts.append(self._all_of(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all_of(self, depth: int) -> Node:
        parts = [self._one(depth)]
        while self.word("AND"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self, depth: int) -> Node:
        if depth > DEEPEST:
            self.refuse(f"More than {DEEPEST} parentheses or NOTs are inside each other; write it flatter")
        if self.word("NOT"):
            return Not(self._one(depth + 1))
        if self._mark("("):
            found = self.any_of(depth + 1)
            if not self._mark(")"):
                self._expected("AND, OR or )", "joint")
            return found
        return self._comparison()

    def _comparison(self) -> Comparison:
        self._comparisons += 1
        if self._comparisons > MOST_COMPARISONS:
            self.refuse(f"More than {MOST_COMPARISONS} comparisons; narrow it by fewer")
        at = self.next.at
        key = self.key()
        if key.type is Type.FLAG and self.next.kind != "operator":
            return Comparison(key, "=", True, at, at)
        operator_at = self.next.at
        operator = self._operator(key)
        if operator not in OPERATORS[key.type]:
            self.refuse(f"{key} cannot be compared by {operator}; use {', '.join(OPERATORS[key.type])}", operator_at)
        value_at = self.next.at
        return Comparison(key, operator, self._value(key, operator), at, value_at)

    def key(self) -> Key:
        token = self.next
        part = token.text.lower()
        opens = self._at + 1 < len(self._tokens) and self._tokens[self._at + 1].text == "("
        if token.kind == "word" and part in PARTS and opens:
            self._at += 2
            inner = self._named()
            if inner.kind is not Kind.METRIC:
                self.refuse(f"{part}() is of metrics only, as in {part}(metrics.loss)", token.at)
            if not self._mark(")"):
                self._expected(")")
            return Key(Kind.METRIC, inner.name, part)
        return self._named()

    def _named(self) -> Key:
        token = self.next
        if token.kind == "key":
            kind = KINDS.get(token.prefix)
            if kind is None:
                self.refuse(f"{token.prefix!r} is no kind of key; use {', '.join(sorted(set(KINDS.values())))}", token.at)
            key = Key(kind, OTHER_NAMES.get(token.text, token.text) if kind is Kind.ATTRIBUTE else token.text)
            key = NAME if key == NAME_TAG else key
        elif token.kind in ("word", "ticks", "string") and not (token.kind == "word" and token.text.upper() in RESERVED):
            key = Key(Kind.ATTRIBUTE, OTHER_NAMES.get(token.text, token.text))
        else:
            self._expected("a key such as metrics.loss, params.lr or state", "key")
        self._known(key, token)
        self._at += 1
        return key

    def _known(self, key: Key, token: Token) -> None:
        if key.kind is Kind.ATTRIBUTE and key.name not in ATTRIBUTES:
            hint = f"did you mean metrics.{token.text} or params.{token.text}?" if not token.prefix else "choose another"
            self.refuse(f"{token.text!r} is no attribute of a run ({', '.join(ATTRIBUTES)}); {hint}", token.at)
        if key.kind is Kind.DATASET and key.name not in DATASET_KEYS:
            self.refuse(f"{key.name!r} is nothing that data sets have; use {', '.join(DATASET_KEYS)}", token.at)
        if not key.name:
            self.refuse("The key is empty", token.at)

    def _operator(self, key: Key) -> str:
        if self.next.kind == "operator":
            return self._sign()
        if found := self.word("LIKE", "ILIKE", "IN"):
            return found
        if self.word("NOT"):
            return "NOT IN" if self.word("IN") else self._expected("IN")
        if not self.word("IS"):
            self._expected(", ".join(OPERATORS[key.type]), "operator", key)
        if self.word("NOT"):
            return "IS NOT NULL" if self.word("NULL") else self._expected("NULL")
        return "IS NULL" if self.word("NULL") else self._expected("NULL or NOT NULL")

    def _sign(self) -> str:
        token = self.next
        if token.text in ("==", "<>"):
            self.refuse(f"Write {'=' if token.text == '==' else '!='} instead of {token.text}", token.at)
        self._at += 1
        return token.text

    def _value(self, key: Key, operator: str) -> Value:
        if operator in ("IS NULL", "IS NOT NULL"):
            return None
        if operator not in ("IN", "NOT IN"):
            return self._scalar(key, operator)
        if not self._mark("("):
            self._expected("( before the list of values", "list", key)
        found = [self._scalar(key, operator)]
        while self._mark(","):
            found.append(self._scalar(key, operator))
        if not self._mark(")"):
            self._expected(", or )")
        return listed(found)

    def _scalar(self, key: Key, operator: str) -> str | int | float | bool:
        token = self.next
        if token.kind not in ("string", "number", "word"):
            self._expected("a value", "value", key)
        found = value_of(key, operator, token)
        if found.trouble:
            self.refuse(found.trouble, token.at)
        self._at += 1
        return found.value

    def word(self, *words: str) -> str:
        """The next token in capitals where it is one of `words`, which is then read; else nothing."""
        token = self.next
        if token.kind == "word" and token.text.upper() in words:
            self._at += 1
            return token.text.upper()
        return ""

    def _mark(self, mark: str) -> bool:
        token = self.next
        if token.kind == "mark" and token.text == mark:
            self._at += 1
            return True
        return False

    def expect_end(self, wanted: str, kind: str = "") -> None:
        if self.next.kind != "end":
            self._expected(f"{wanted}, or the end", kind)

    def _expected(self, wanted: str, kind: str = "", key: Key | None = None) -> NoReturn:
        token = self.next
        found = "it ends here" if token.kind == "end" else f"{self._text[token.at : token.at + 40].split()[0]!r} stands here"
        raise FilterError(f"Expected {wanted}; {found}", token.at, self._text, self._field, wanted=kind, key=key)

    def refuse(self, message: str, at: int | None = None) -> NoReturn:
        raise FilterError(message, self.next.at if at is None else at, self._text, self._field)
