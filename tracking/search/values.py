"""Parses and checks the values that keys are compared with. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from tracking.search.time_values import parse_time_ms
from tracking.search.tokens import Token
from tracking.search.tree import ComparisonValue, Key, Scalar
from tracking.search.vocabulary import ORDER, AttributeType, KeyKind

NUMBERS = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
    "infinity": math.inf,
    "-infinity": -math.inf,
}
MAX_INTEGER = 2**63 - 1
# Characters of a LIKE pattern: databases compare it at every character of every text that they scan.
MAX_PATTERN_LENGTH = 500


@dataclass(frozen=True)
class ParsedValue:
    """A value; `error` says why it is not valid for its key, else it is empty."""

    value: Scalar
    error: str = ""


def parse_value(key: Key, operator: str, token: Token) -> ParsedValue:
    if token.kind == "word":
        return _word(key, operator, token.text)
    if token.kind == "number":
        return _number(key, operator, token.text)
    return _text(key, operator, token.text)


def list_value(values: Sequence[Scalar]) -> ComparisonValue:
    return cast("tuple[str, ...] | tuple[float, ...]", tuple(values))


def _word(key: Key, operator: str, text: str) -> ParsedValue:
    if key.type is AttributeType.FLAG and text.lower() in ("true", "false"):
        return ParsedValue(text.lower() == "true")
    if key.type is KeyKind.METRIC and text.lower() in NUMBERS:
        return ParsedValue(NUMBERS[text.lower()])
    if key.type is KeyKind.PARAM and operator in ORDER and math.isinf(NUMBERS.get(text.lower(), 0)):
        return ParsedValue(NUMBERS[text.lower()])
    if key.type in (KeyKind.METRIC, AttributeType.NUMBER):
        return ParsedValue("", f"{key} is compared with a number")
    if key.type is AttributeType.FLAG:
        return ParsedValue("", f"{key} is true or false")
    return ParsedValue("", f"Write text in quotes: '{text}'")


def _number(key: Key, operator: str, text: str) -> ParsedValue:
    if key.type is AttributeType.FLAG:
        return ParsedValue("", f"{key} is true or false")
    if key.type in (KeyKind.TAG, KeyKind.DATASET, AttributeType.TEXT, AttributeType.WORD) or operator in (
        "LIKE",
        "ILIKE",
    ):
        return ParsedValue("", f"{key} is text here; write it in quotes: '{text}'")
    value = float(text) if any(mark in text for mark in ".eE") else _whole(text)
    if key.type is AttributeType.TIME and not -MAX_INTEGER <= value <= MAX_INTEGER:
        return ParsedValue("", "This is not a time; give milliseconds since 1970, or '2025-11-30'")
    if key.type is not KeyKind.METRIC and math.isinf(value):
        return ParsedValue("", f"{text[:40]} is larger than any number that {key} may be")
    if key.type is KeyKind.PARAM and operator in ("IN", "NOT IN"):
        return ParsedValue("", f"Params are text in a list; write it in quotes: '{text}'")
    return ParsedValue(value)


def _whole(text: str) -> int | float:
    """Returns an integer that every database can store, or else the nearest float."""
    # No finite float has 400 digits, and int() refuses texts of more than 4,300.
    value = int(text) if len(text) < 400 else math.inf
    return value if -MAX_INTEGER <= value <= MAX_INTEGER else float(text)


def _text(key: Key, operator: str, text: str) -> ParsedValue:
    if key.type in (KeyKind.METRIC, AttributeType.NUMBER):
        return ParsedValue("", f"{key} is compared with a number; write it without quotes")
    if key.type is AttributeType.FLAG:
        return ParsedValue("", f"{key} is true or false, without quotes")
    if key.type is KeyKind.PARAM and operator in (">", ">=", "<", "<="):
        return ParsedValue("", f"With {operator} a param is compared as a number; write it without quotes")
    if key.type is AttributeType.TIME:
        ms = parse_time_ms(text)
        return (
            ParsedValue(ms)
            if ms is not None
            else ParsedValue("", "This is not a time; write '2025-11-30', '2025-11-30 18:00' or '7d ago'")
        )
    if operator in ("LIKE", "ILIKE") and len(text) > MAX_PATTERN_LENGTH:
        return ParsedValue(
            "", f"A pattern may have {MAX_PATTERN_LENGTH} characters; this one has {len(text)}"
        )
    return ParsedValue(text)
