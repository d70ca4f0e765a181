"""Splits a filter's text into tokens with positions. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from tracking.search.errors import FilterError

MAX_CHARACTERS = 20_000
_KEY = r"[\w./:@+-]*[\w]"
_QUOTED = r"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'"
# The order of the alternatives matters: a word would match the prefix of a key, and `>` a part of `>=`.
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+)
  | (?P<key>(?:`(?P<ticked>\w+)`|(?P<prefix>[^\W\d]\w*))\s*\.\s*
      (?:(?P<quoted_key>{_QUOTED})|(?P<plain_key>{_KEY})))
  | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?P<unit>[A-Za-z_]\w*)?)
  | (?P<word>[+-]?[^\W\d]\w*)
  | (?P<ticks>`(?:[^`]|``)*`)
  | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
  | (?P<operator>>=|<=|!=|==|<>|=|<|>)
  | (?P<mark>[(),])
    """,
    re.VERBOSE,
)
UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True)
class Token:
    """`kind` is key, number, word, ticks, string, operator, mark or end. For metrics.loss, `prefix` is
    metrics and `text` is loss; `at` is the offset in the filter."""

    kind: str
    text: str
    at: int
    prefix: str = ""


def tokenize(text: str, field: str) -> list[Token]:
    """Returns the tokens of `text`, with an end token. Raises FilterError."""
    if len(text) > MAX_CHARACTERS:
        raise FilterError(
            f"It has {len(text)} characters; {MAX_CHARACTERS} are allowed", MAX_CHARACTERS, "", field
        )
    result: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            _fail(text, at, field)
        if match.lastgroup != "space":
            result.append(_token(match, field))
        at = match.end()
    return [*result, Token("end", "", len(text))]


def unquote(text: str) -> str:
    """Returns the text without its quotes; a doubled quote inside becomes one."""
    if len(text) >= 2 and text[0] in "'\"`" and text[-1] == text[0]:
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def _token(match: re.Match[str], field: str) -> Token:
    at = match.start()
    if match["key"]:
        return Token(
            "key", unquote(match["quoted_key"] or match["plain_key"]), at, match["ticked"] or match["prefix"]
        )
    if match["number"]:
        return _number(match, field)
    for kind in ("word", "operator", "mark"):
        if match[kind]:
            return Token(kind, match[kind], at)
    kind = "ticks" if match["ticks"] else "string"
    return Token(kind, unquote(match[kind]), at)


def _number(match: re.Match[str], field: str) -> Token:
    unit = match["unit"]
    if not unit:
        return Token("number", match["number"], match.start())
    if unit not in UNITS:
        message = (
            f"{match['number']} is neither a number nor a duration; write text in quotes, "
            "durations as 30min, 2h or 7d"
        )
        raise FilterError(message, match.start(), match.string, field)
    seconds = float(match["number"].removesuffix(unit)) * UNITS[unit]
    return Token("number", repr(int(seconds) if seconds.is_integer() else seconds), match.start())


def _fail(text: str, at: int, field: str) -> NoReturn:
    character = text[at]
    if character in "'\"`":
        raise FilterError(f"The {character} that starts here is not closed", at, text, field)
    raise FilterError(f"{character!r} is not allowed here; write text in quotes", at, text, field)
