"""Text to tree: MLflow's grammar of filters, and OR, NOT, parentheses, numbers of params, min and max of
metrics. Pure.

any    := all { OR all }            all := one { AND one }        one := NOT one | ( any ) | comparison | flag
comparison := key operator value | key [NOT] IN ( value, … ) | key IS [NOT] NULL
key    := [kind .] name | min ( metrics.name ) | max ( metrics.name )
"""

from __future__ import annotations

from collections.abc import Sequence

from tracking.search.errors import FilterError
from tracking.search.token_stream import TokenStream
from tracking.search.tokens import Token
from tracking.search.tree import And, Comparison, Key, Node, Not, Or, OrderBy, Value
from tracking.search.values import listed, value_of
from tracking.search.vocabulary import (
    ATTRIBUTES,
    DATASET_KEYS,
    KINDS,
    OPERATORS,
    OTHER_NAMES,
    PARTS,
    Kind,
    Type,
)

DEEPEST = 40
MOST_COMPARISONS = 100
MOST_ORDERS = 20
NAME = Key(Kind.ATTRIBUTE, "run_name")
NAME_TAG = Key(Kind.TAG, "mlflow.runName")
"""To MLflow's clients a run's name is a tag."""
RESERVED = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "ILIKE", "TRUE", "FALSE"})


def parse(text: str) -> Node | None:
    """None where there is nothing to filter by; raises FilterError."""
    reader = _Reader(text, "filter")
    if reader.next.kind == "end":
        return None
    found = reader.any_of(0)
    reader.end("AND or OR", "joint")
    return found


def parse_key(text: str) -> Key:
    """`metrics.acc`, `min(metrics.loss)`, `duration`; raises FilterError."""
    reader = _Reader(text, "column")
    key = reader.key()
    reader.end("nothing else")
    return key


def parse_order(text: str) -> OrderBy:
    """`metrics.acc DESC`, `params.lr`; raises FilterError."""
    reader = _Reader(text, "order_by")
    key = reader.key()
    if key.kind is Kind.DATASET:
        reader.refuse("Runs cannot be ordered by their data sets", 0)
    direction = reader.word("ASC", "DESC")
    reader.end("ASC or DESC")
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


class _Reader(TokenStream):
    def __init__(self, text: str, field: str) -> None:
        super().__init__(text, field)
        self._comparisons = 0

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
        if self.mark("("):
            found = self.any_of(depth + 1)
            if not self.mark(")"):
                self.expected("AND, OR or )", "joint")
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
        operator = self.operator(", ".join(OPERATORS[key.type]), key)
        if operator not in OPERATORS[key.type]:
            self.refuse(
                f"{key} cannot be compared by {operator}; use {', '.join(OPERATORS[key.type])}", operator_at
            )
        value_at = self.next.at
        return Comparison(key, operator, self._value(key, operator), at, value_at)

    def key(self) -> Key:
        token = self.next
        part = token.text.lower()
        if token.kind == "word" and part in PARTS and self.opens:
            self.take()
            self.take()
            inner = self._named()
            if inner.kind is not Kind.METRIC:
                self.refuse(f"{part}() is of metrics only, as in {part}(metrics.loss)", token.at)
            if not self.mark(")"):
                self.expected(")")
            return Key(Kind.METRIC, inner.name, part)
        return self._named()

    def _named(self) -> Key:
        token = self.next
        if token.kind == "key":
            kind = KINDS.get(token.prefix)
            if kind is None:
                self.refuse(
                    f"{token.prefix!r} is no kind of key; use {', '.join(sorted(set(KINDS.values())))}",
                    token.at,
                )
            key = Key(kind, OTHER_NAMES.get(token.text, token.text) if kind is Kind.ATTRIBUTE else token.text)
            key = NAME if key == NAME_TAG else key
        elif token.kind in ("word", "ticks", "string") and not (
            token.kind == "word" and token.text.upper() in RESERVED
        ):
            key = Key(Kind.ATTRIBUTE, OTHER_NAMES.get(token.text, token.text))
        else:
            self.expected("a key such as metrics.loss, params.lr or state", "key")
        self._known(key, token)
        self.take()
        return key

    def _known(self, key: Key, token: Token) -> None:
        if key.kind is Kind.ATTRIBUTE and key.name not in ATTRIBUTES:
            hint = (
                f"did you mean metrics.{token.text} or params.{token.text}?"
                if not token.prefix
                else "choose another"
            )
            self.refuse(
                f"{token.text!r} is no attribute of a run ({', '.join(ATTRIBUTES)}); {hint}", token.at
            )
        if key.kind is Kind.DATASET and key.name not in DATASET_KEYS:
            self.refuse(
                f"{key.name!r} is nothing that data sets have; use {', '.join(DATASET_KEYS)}", token.at
            )
        if not key.name:
            self.refuse("The key is empty", token.at)

    def _value(self, key: Key, operator: str) -> Value:
        if operator in ("IS NULL", "IS NOT NULL"):
            return None
        if operator not in ("IN", "NOT IN"):
            return self._scalar(key, operator)
        if not self.mark("("):
            self.expected("( before the list of values", "list", key)
        found = [self._scalar(key, operator)]
        while self.mark(","):
            found.append(self._scalar(key, operator))
        if not self.mark(")"):
            self.expected(", or )")
        return listed(found)

    def _scalar(self, key: Key, operator: str) -> str | int | float | bool:
        token = self.next
        if token.kind not in ("string", "number", "word"):
            self.expected("a value", "value", key)
        found = value_of(key, operator, token)
        if found.trouble:
            self.refuse(found.trouble, token.at)
        self.take()
        return found.value
