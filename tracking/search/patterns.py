"""LIKE and ILIKE, alike on every database: `%` any characters, `_` one, a backslash before either means
itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from django.db.models import CharField, Lookup, TextField
from django.db.models.fields.related import ForeignKey
from django.db.models.functions import Length

ESCAPED = "\\"

CharField.register_lookup(Length)


def matches(pattern: str, text: str, *, any_case: bool = False) -> bool:
    """Of text at hand. Each part between two `%` is looked for once: as one regular expression `%a%a%a` would
    try every way of dividing a long text, and hold up the whole server meanwhile."""
    first, *rest = _parts(pattern, any_case)
    if not rest:
        return first.fullmatch(text) is not None
    found = first.match(text)
    for part in rest[:-1]:
        found = part.search(text, found.end()) if found else None
    return found is not None and rest[-1].search(text, found.end()) is not None


@lru_cache(256)
def _parts(pattern: str, any_case: bool) -> list[re.Pattern[str]]:
    """What stands between the `%`; the last of several only at the end of a text."""
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
    """For LIKE … ESCAPE '\\'."""
    return _written(
        pattern, lambda text: ESCAPED + text if text in ("%", "_", ESCAPED) else text, {"%": "%", "_": "_"}
    )


def glob(pattern: str) -> str:
    """For SQLite's GLOB, which minds the case as its LIKE does not."""
    return _written(
        pattern, lambda text: f"[{text}]" if text in ("*", "?", "[") else text, {"%": "*", "_": "?"}
    )


def _written(pattern: str, literal: Callable[[str], str], wild: dict[str, str]) -> str:
    return "".join(wild[text] if is_wild else literal(text) for text, is_wild in _pieces(pattern))


def _pieces(pattern: str) -> Iterator[tuple[str, bool]]:
    """Each character, and whether it stands for others."""
    characters = iter(pattern)
    for character in characters:
        if character != ESCAPED:
            yield character, character in ("%", "_")
            continue
        after = next(characters, "")
        if after and after not in ("%", "_", ESCAPED):
            yield ESCAPED, False
        yield after or ESCAPED, False


class _Pattern(Lookup):
    def get_prep_lookup(self) -> Any:
        return str(self.rhs)

    def _sides(self, compiler: Any, connection: Any, pattern: str) -> tuple[str, tuple[Any, ...]]:
        lhs, params = self.process_lhs(compiler, connection)
        return lhs, (*params, pattern)


@CharField.register_lookup
@TextField.register_lookup
@ForeignKey.register_lookup
class Like(_Pattern):
    lookup_name = "like"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        lhs, params = self._sides(compiler, connection, sql(self.rhs))
        return f"{lhs} LIKE %s ESCAPE '\\'", params

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        lhs, params = self._sides(compiler, connection, glob(self.rhs))
        return f"{lhs} GLOB %s", params


@CharField.register_lookup
@TextField.register_lookup
@ForeignKey.register_lookup
class ILike(_Pattern):
    """SQLite knows the two cases of ASCII letters only."""

    lookup_name = "ilike"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        lhs, params = self._sides(compiler, connection, sql(self.rhs))
        return f"{lhs} ILIKE %s ESCAPE '\\'", params

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        lhs, params = self._sides(compiler, connection, sql(self.rhs))
        return f"{lhs} LIKE %s ESCAPE '\\'", params
