"""Parses filters: MLflow's grammar with OR, NOT, parentheses, numeric params, and min and max of metrics.
Pure.

any := all { OR all }
all := one { AND one }
one := NOT one | ( any ) | comparison | flag
comparison := key operator value | key [NOT] IN ( value, … ) | key IS [NOT] NULL
key := [kind .] name | min ( metrics.name ) | max ( metrics.name ) | last ( metrics.name )
"""

from __future__ import annotations

from collections.abc import Sequence

from tracking.search.errors import FilterError
from tracking.search.token_stream import TokenStream
from tracking.search.tokens import Token
from tracking.search.tree import And, Comparison, ComparisonValue, Key, Node, Not, Or, OrderBy
from tracking.search.values import list_value, parse_value
from tracking.search.vocabulary import (
    ATTRIBUTES,
    DATASET_KEYS,
    KINDS,
    OPERATORS,
    OTHER_NAMES,
    PARTS,
    AttributeType,
    KeyKind,
)

# The parser and the compiler call themselves once for each level of nesting.
MAX_DEPTH = 40
MAX_COMPARISONS = 100
MAX_ORDERS = 20
NAME = Key(KeyKind.ATTRIBUTE, "run_name")
# MLflow's clients treat a run's name as a tag.
NAME_TAG = Key(KeyKind.TAG, "mlflow.runName")
RESERVED = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "ILIKE", "TRUE", "FALSE"})


def parse(text: str) -> Node | None:
    """Returns the tree of a filter, or None for an empty one. Raises FilterError."""
    parser = _FilterParser(text, "filter")
    if parser.next.kind == "end":
        return None
    node = parser.parse_any(0)
    parser.expect_end("AND or OR", "joint")
    return node


def parse_key(text: str) -> Key:
    """Parses a key such as `metrics.acc`, `min(metrics.loss)` or `duration`. Raises FilterError."""
    parser = _FilterParser(text, "column")
    key = parser.key()
    parser.expect_end("nothing else")
    return key


def parse_order(text: str) -> OrderBy:
    """Parses an order such as `metrics.acc DESC` or `params.lr`. Raises FilterError."""
    parser = _FilterParser(text, "order_by")
    key = parser.key()
    if key.kind is KeyKind.DATASET:
        parser.fail("Runs cannot be ordered by their data sets", 0)
    direction = parser.take_word("ASC", "DESC")
    parser.expect_end("ASC or DESC")
    return OrderBy(key, direction == "DESC")


def parse_orders(texts: Sequence[str]) -> list[OrderBy]:
    """Parses several orders; as in MLflow a key may occur only once. Raises FilterError."""
    orders: list[OrderBy] = []
    if len(texts) > MAX_ORDERS:
        raise FilterError(f"More than {MAX_ORDERS} keys to order by; leave some out", 0, "", "order_by")
    for text in texts:
        order = parse_order(text)
        if order.key in [existing.key for existing in orders]:
            raise FilterError(f"{order.key} is given twice", 0, text, "order_by")
        orders.append(order)
    return orders


class _FilterParser(TokenStream):
    def __init__(self, text: str, field: str) -> None:
        super().__init__(text, field)
        self._comparisons = 0

    def parse_any(self, depth: int) -> Node:
        parts = [self._parse_all(depth)]
        while self.take_word("OR"):
            parts.append(self._parse_all(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _parse_all(self, depth: int) -> Node:
        parts = [self._parse_term(depth)]
        while self.take_word("AND"):
            parts.append(self._parse_term(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _parse_term(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self.fail(f"More than {MAX_DEPTH} parentheses or NOTs are nested; simplify the filter")
        if self.take_word("NOT"):
            return Not(self._parse_term(depth + 1))
        if self.take_mark("("):
            node = self.parse_any(depth + 1)
            if not self.take_mark(")"):
                self.fail_expected("AND, OR or )", "joint")
            return node
        return self._parse_comparison()

    def _parse_comparison(self) -> Comparison:
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            self.fail(f"More than {MAX_COMPARISONS} comparisons; use fewer")
        at = self.next.at
        key = self.key()
        # A flag alone means that it is true, as in `starred AND mine`.
        if key.type is AttributeType.FLAG and self.next.kind != "operator":
            return Comparison(key, "=", True, at, at)
        operator_at = self.next.at
        operator = self.take_operator(", ".join(OPERATORS[key.type]), key)
        if operator not in OPERATORS[key.type]:
            self.fail(
                f"{key} cannot be compared by {operator}; use {', '.join(OPERATORS[key.type])}", operator_at
            )
        value_at = self.next.at
        return Comparison(key, operator, self._parse_value(key, operator), at, value_at)

    def key(self) -> Key:
        token = self.next
        part = token.text.lower()
        # Without a parenthesis the word is read as a name, so that the error lists the attributes.
        if token.kind == "word" and part in PARTS and self.is_call:
            self.take()
            self.take()
            inner = self._parse_name()
            if inner.kind is not KeyKind.METRIC:
                self.fail(f"{part}() is for metrics only, as in {part}(metrics.loss)", token.at)
            if not self.take_mark(")"):
                self.fail_expected(")")
            return Key(KeyKind.METRIC, inner.name, part)
        return self._parse_name()

    def _parse_name(self) -> Key:
        token = self.next
        if token.kind == "key":
            kind = KINDS.get(token.prefix)
            if kind is None:
                self.fail(
                    f"{token.prefix!r} is not a kind of key; use {', '.join(sorted(set(KINDS.values())))}",
                    token.at,
                )
            key = Key(
                kind, OTHER_NAMES.get(token.text, token.text) if kind is KeyKind.ATTRIBUTE else token.text
            )
            key = NAME if key == NAME_TAG else key
        elif token.kind in ("word", "ticks", "string") and not (
            token.kind == "word" and token.text.upper() in RESERVED
        ):
            key = Key(KeyKind.ATTRIBUTE, OTHER_NAMES.get(token.text, token.text))
        else:
            self.fail_expected("a key such as metrics.loss, params.lr or state", "key")
        self._check_key(key, token)
        self.take()
        return key

    def _check_key(self, key: Key, token: Token) -> None:
        if key.kind is KeyKind.ATTRIBUTE and key.name not in ATTRIBUTES:
            hint = (
                f"did you mean metrics.{token.text} or params.{token.text}?"
                if not token.prefix
                else "choose another"
            )
            self.fail(
                f"{token.text!r} is not an attribute of a run ({', '.join(ATTRIBUTES)}); {hint}", token.at
            )
        if key.kind is KeyKind.DATASET and key.name not in DATASET_KEYS:
            self.fail(f"{key.name!r} is not a field of data sets; use {', '.join(DATASET_KEYS)}", token.at)
        if not key.name:
            self.fail("The key is empty", token.at)

    def _parse_value(self, key: Key, operator: str) -> ComparisonValue:
        if operator in ("IS NULL", "IS NOT NULL"):
            return None
        if operator not in ("IN", "NOT IN"):
            return self._parse_scalar(key, operator)
        if not self.take_mark("("):
            self.fail_expected("( before the list of values", "list", key)
        values = [self._parse_scalar(key, operator)]
        while self.take_mark(","):
            values.append(self._parse_scalar(key, operator))
        if not self.take_mark(")"):
            self.fail_expected(", or )")
        return list_value(values)

    def _parse_scalar(self, key: Key, operator: str) -> str | int | float | bool:
        token = self.next
        if token.kind not in ("string", "number", "word"):
            self.fail_expected("a value", "value", key)
        parsed = parse_value(key, operator, token)
        if parsed.error:
            self.fail(parsed.error, token.at)
        self.take()
        return parsed.value
