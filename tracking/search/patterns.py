"""LIKE and ILIKE with the same meaning on every database: `%` matches any characters, `_` one; a backslash
escapes both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from django.db.models import CharField, Lookup, TextField
from django.db.models.fields.related import ForeignKey
from django.db.models.functions import Length

ESCAPED = "\\"

# For the lookup `short__length` of the compiler; Django does not register Length by itself.
CharField.register_lookup(Length)


def matches(pattern: str, text: str, *, any_case: bool = False) -> bool:
    """Returns whether `text` matches. It searches for each part between two `%` once: as one regular
    expression, `%a%a%a` would backtrack through a long text and block the server."""
    first, *rest = _parts(pattern, any_case)
    if not rest:
        return first.fullmatch(text) is not None
    # Each part takes its earliest match, which leaves the longest text for the parts after it; so no earlier
    # decision ever has to be revised.
    match = first.match(text)
    for part in rest[:-1]:
        match = part.search(text, match.end()) if match else None
    return match is not None and rest[-1].search(text, match.end()) is not None


@lru_cache(256)
def _parts(pattern: str, any_case: bool) -> list[re.Pattern[str]]:
    """Returns the expressions between the `%`; the last of several matches only at the end."""
    parts = [""]
    for text, is_wild in _pieces(pattern):
        if is_wild and text == "%":
            parts.append("")
        else:
            parts[-1] += "." if is_wild else re.escape(text)
    if len(parts) > 1:
        parts[-1] += r"\Z"
    return [re.compile(part, re.DOTALL | (re.IGNORECASE if any_case else 0)) for part in parts]


def sql(pattern: str) -> str:
    """Returns the pattern for LIKE … ESCAPE '\\\\'."""
    return _translate(
        pattern, lambda text: ESCAPED + text if text in ("%", "_", ESCAPED) else text, {"%": "%", "_": "_"}
    )


def glob(pattern: str) -> str:
    """Returns the pattern for SQLite's GLOB, which is case-sensitive; its LIKE is not."""
    return _translate(
        pattern, lambda text: f"[{text}]" if text in ("*", "?", "[") else text, {"%": "*", "_": "?"}
    )


def _translate(pattern: str, literal: Callable[[str], str], wild: dict[str, str]) -> str:
    return "".join(wild[text] if is_wild else literal(text) for text, is_wild in _pieces(pattern))


def _pieces(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yields each character and whether it is a wildcard."""
    characters = iter(pattern)
    for character in characters:
        if character != ESCAPED:
            yield character, character in ("%", "_")
            continue
        after = next(characters, "")
        # A backslash before any other character stands for itself.
        if after and after not in ("%", "_", ESCAPED):
            yield ESCAPED, False
        yield after or ESCAPED, False


class _Pattern(Lookup):
    def get_prep_lookup(self) -> object:
        # The pattern is text even where the field is not, as with the foreign key `parent`.
        return str(self.rhs)

    def _sides(self, compiler: Any, connection: Any, pattern: str) -> tuple[str, tuple[object, ...]]:
        lhs, params = self.process_lhs(compiler, connection)
        return lhs, (*params, pattern)


@CharField.register_lookup
@TextField.register_lookup
@ForeignKey.register_lookup
class Like(_Pattern):
    lookup_name = "like"

    def as_sql(self, compiler: object, connection: Any) -> tuple[str, tuple[Any, ...]]:
        lhs, params = self._sides(compiler, connection, sql(self.rhs))
        return f"{lhs} LIKE %s ESCAPE '\\'", params

    def as_sqlite(self, compiler: object, connection: object) -> tuple[str, tuple[object, ...]]:
        lhs, params = self._sides(compiler, connection, glob(self.rhs))
        return f"{lhs} GLOB %s", params


@CharField.register_lookup
@TextField.register_lookup
@ForeignKey.register_lookup
class ILike(_Pattern):
    """Case-insensitive LIKE; on SQLite only for ASCII letters."""

    lookup_name = "ilike"

    def as_sql(self, compiler: object, connection: Any) -> tuple[str, tuple[Any, ...]]:
        lhs, params = self._sides(compiler, connection, sql(self.rhs))
        return f"{lhs} ILIKE %s ESCAPE '\\'", params

    def as_sqlite(self, compiler: object, connection: object) -> tuple[str, tuple[object, ...]]:
        lhs, params = self._sides(compiler, connection, sql(self.rhs))
        return f"{lhs} LIKE %s ESCAPE '\\'", params
