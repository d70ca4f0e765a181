"""LIKE and ILIKE, alike on every database: `%` any characters, `_` one, a backslash before either means itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import CharField, Lookup, TextField
from django.db.models.fields.related import ForeignKey
from django.db.models.functions import Length

ESCAPED = "\\"

CharField.register_lookup(Length)


def regex(pattern: str, *, any_case: bool = False) -> re.Pattern[str]:
    written = "".join(
        {"%": ".*", "_": "."}[text] if is_wild else re.escape(text) for text, is_wild in _pieces(pattern)
    )
    return re.compile(written, re.DOTALL | (re.IGNORECASE if any_case else 0))


def sql(pattern: str) -> str:
    """For LIKE … ESCAPE '\\'."""
    return _written(pattern, lambda text: ESCAPED + text if text in ("%", "_", ESCAPED) else text, {"%": "%", "_": "_"})


def glob(pattern: str) -> str:
    """For SQLite's GLOB, which minds the case as its LIKE does not."""
    return _written(pattern, lambda text: f"[{text}]" if text in ("*", "?", "[") else text, {"%": "*", "_": "?"})


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
