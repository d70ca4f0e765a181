"""Which values each key may be compared with. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from tracking.search.time_values import moment_ms
from tracking.search.tokens import Token
from tracking.search.tree import Key, Scalar, Value
from tracking.search.vocabulary import ORDER, Kind, Type

NUMBERS = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
    "infinity": math.inf,
    "-infinity": -math.inf,
}
LARGEST = 2**63 - 1
LONGEST_PATTERN = 500
"""Characters of a LIKE pattern: databases compare it at every character of every text that they look at."""


@dataclass(frozen=True)
class Read:
    """`trouble`: why it is no value for its key; else empty."""

    value: Scalar
    trouble: str = ""


def value_of(key: Key, operator: str, token: Token) -> Read:
    if token.kind == "word":
        return _word(key, operator, token.text)
    if token.kind == "number":
        return _number(key, operator, token.text)
    return _text(key, operator, token.text)


def listed(values: Sequence[Scalar]) -> Value:
    return cast("tuple[str, ...] | tuple[float, ...]", tuple(values))


def _word(key: Key, operator: str, text: str) -> Read:
    if key.type is Type.FLAG and text.lower() in ("true", "false"):
        return Read(text.lower() == "true")
    if key.type is Kind.METRIC and text.lower() in NUMBERS:
        return Read(NUMBERS[text.lower()])
    if key.type is Kind.PARAM and operator in ORDER and math.isinf(NUMBERS.get(text.lower(), 0)):
        return Read(NUMBERS[text.lower()])
    if key.type in (Kind.METRIC, Type.NUMBER):
        return Read("", f"{key} is compared with a number")
    if key.type is Type.FLAG:
        return Read("", f"{key} is true or false")
    return Read("", f"Write text in quotes: '{text}'")


def _number(key: Key, operator: str, text: str) -> Read:
    if key.type is Type.FLAG:
        return Read("", f"{key} is true or false")
    if key.type in (Kind.TAG, Kind.DATASET, Type.TEXT, Type.WORD) or operator in ("LIKE", "ILIKE"):
        return Read("", f"{key} is text here; write it in quotes: '{text}'")
    value = float(text) if any(mark in text for mark in ".eE") else _whole(text)
    if key.type is Type.TIME and not -LARGEST <= value <= LARGEST:
        return Read("", "This is no time: give milliseconds since 1970, or '2025-11-30'")
    if key.type is not Kind.METRIC and math.isinf(value):
        return Read("", f"{text[:40]} is larger than any number that {key} may be")
    if key.type is Kind.PARAM and operator in ("IN", "NOT IN"):
        return Read("", f"Params are text in a list; write it in quotes: '{text}'")
    return Read(value)


def _whole(text: str) -> int | float:
    """An integer that every database can hold, else the nearest float."""
    value = int(text) if len(text) < 400 else math.inf
    return value if -LARGEST <= value <= LARGEST else float(text)


def _text(key: Key, operator: str, text: str) -> Read:
    if key.type in (Kind.METRIC, Type.NUMBER):
        return Read("", f"{key} is compared with a number; write it without quotes")
    if key.type is Type.FLAG:
        return Read("", f"{key} is true or false, without quotes")
    if key.type is Kind.PARAM and operator in (">", ">=", "<", "<="):
        return Read("", f"With {operator} a param is compared as a number; write it without quotes")
    if key.type is Type.TIME:
        ms = moment_ms(text)
        return (
            Read(ms)
            if ms is not None
            else Read("", "This is no time; write '2025-11-30', '2025-11-30 18:00' or '7d ago'")
        )
    if operator in ("LIKE", "ILIKE") and len(text) > LONGEST_PATTERN:
        return Read("", f"A pattern may have {LONGEST_PATTERN} characters; this one has {len(text)}")
    return Read(text)
