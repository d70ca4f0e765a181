"""JSON in one form, whether SQLite has stored its text or PostgreSQL its values."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import orjson

# PostgreSQL writes numbers without exponents, and has no negative zero.
_OTHER_NUMBER = re.compile(r"(?:\A|[\s:,\[])(?:-0|-?\d+(?:\.\d+)?[eE])")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
# Whole numbers of more bits are floats for orjson.
_LEAST, _MOST = -(2**63), 2**64
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
REPLACEMENT = "\\ufffd"


def canonical_json(text: str) -> bytes:
    """Returns the value with its keys in order and its numbers as PostgreSQL keeps them."""
    if _OTHER_NUMBER.search(text):
        return _slow_form(text)
    try:
        return orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONDecodeError, TypeError, RecursionError):
        return _slow_form(text)


def _slow_form(text: str) -> bytes:
    value = json.loads(text, parse_float=_number, parse_int=_number)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nested too deeply for it
        return json.dumps(value, sort_keys=True).encode()


def _number(text: str) -> int | float:
    """Returns the number as orjson reads it once PostgreSQL has stored it: 1e3 as 1000, -0 as 0."""
    value = Decimal(text)
    if not value:
        return 0.0 if "." in text else 0
    is_whole = "." not in format(value, "f")
    return int(value) if is_whole and _LEAST <= value < _MOST else float(value)


def refused_escapes(text: str) -> list[tuple[int, int]]:
    """Returns begin and end of each escape that PostgreSQL refuses: NUL, and halves of surrogate pairs."""
    refused: list[tuple[int, int]] = []
    high: tuple[int, int] | None = None
    for escape in _ESCAPE.finditer(text):
        code = int(escape[1], 16) if escape[1] else -1
        if high is not None and not (code in _LOW and escape.start() == high[1]):
            refused.append(high)
        elif high is not None:
            high = None
            continue
        high = escape.span() if code in _HIGH else None
        if code == 0 or code in _LOW:
            refused.append(escape.span())
    return [*refused, *([high] if high is not None else [])]


def replace_refused_escapes(text: str) -> str:
    """Returns the JSON with U+FFFD instead of what PostgreSQL refuses."""
    for begin, end in sorted(refused_escapes(text), reverse=True):
        text = text[:begin] + REPLACEMENT + text[end:]
    return text


def replace_nul(text: str) -> str:
    """Returns a text that is no JSON with U+FFFD instead of NUL characters."""
    return text.replace("\0", "\ufffd")
