"""Finds values that SQLite has and PostgreSQL refuses, before anything is copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from trainhub.database_move.column_types import JSON_NUL, NUL, ColumnType
from trainhub.database_move.errors import MoveError
from trainhub.database_move.json_form import refused_escapes
from trainhub.database_move.source import SourceDatabase, sqlite_identifier
from trainhub.database_move.target import TargetTable

MAX_NAMED = 20


@dataclass(frozen=True)
class RefusedValue:
    """`table`, `rowid`, `column`: where it is. `reason`: like "has a NUL character"."""

    table: str
    rowid: int
    column: str
    reason: str

    def __str__(self) -> str:
        return f"table {self.table}, row {self.rowid}, field {self.column}: {self.reason}"


def check_values(source: SourceDatabase, tables: list[TargetTable], *, is_nul_replaced: bool) -> None:
    """Raises MoveError with the places of what PostgreSQL refuses, and how it is mended."""
    every = (
        value
        for table in tables
        for value in refused_values(source, table)
        if not (is_nul_replaced and value.reason in (NUL, JSON_NUL))
    )
    values = list(islice(every, MAX_NAMED + 1))
    broken = source.broken_references(MAX_NAMED + 1 - len(values)) if len(values) <= MAX_NAMED else []
    lines = [str(value) for value in values]
    lines += [f"table {table}, row {rowid}: there is no such {parent}" for table, rowid, parent in broken]
    if lines:
        more = "\n  and others" if len(lines) > MAX_NAMED else ""
        listing = "".join(f"\n  {line}" for line in lines[:MAX_NAMED])
        raise MoveError(
            f"PostgreSQL refuses what is in {source.path}:{listing}{more}\n{_remedy(source, values)}"
        )


def refused_values(source: SourceDatabase, table: TargetTable) -> Iterator[RefusedValue]:
    """Yields the values of a table that PostgreSQL refuses, in one pass over it."""
    rules = [
        (column, reason, condition)
        for column in table.columns
        for reason, condition in column.conditions(sqlite_identifier(column.column))
    ]
    name = sqlite_identifier(table.name)
    # NULL is refused by neither.
    each = [
        f"{sqlite_identifier(column.column)} IS NOT NULL AND ({condition})" for column, _, condition in rules
    ]
    query = f"SELECT rowid, {', '.join(each)} FROM {name} WHERE ({') OR ('.join(each)})"
    for rowid, *broken in source.connection.execute(query):
        for (column, reason, _), is_broken in zip(rules, broken, strict=True):
            if is_broken and not (reason == JSON_NUL and _is_accepted(source, name, rowid, column)):
                yield RefusedValue(table.name, rowid, column.column, reason)


def _is_accepted(source: SourceDatabase, table: str, rowid: int, column: ColumnType) -> bool:
    query = f"SELECT {sqlite_identifier(column.column)} FROM {table} WHERE rowid = ?"
    return not refused_escapes(source.connection.execute(query, (rowid,)).fetchone()[0])


def _remedy(source: SourceDatabase, values: list[RefusedValue]) -> str:
    text = "No row was copied. "
    if any(value.reason in (NUL, JSON_NUL) for value in values):
        text += "With --replace-nul the copy gets U+FFFD in place of such characters. "
    example = next((value for value in values if value.reason not in (NUL, JSON_NUL)), None)
    where = (
        f'"SELECT {example.column} FROM {example.table} WHERE rowid = {example.rowid}"'
        if example is not None
        else '"PRAGMA foreign_key_check"'
    )
    if example is not None or not values:
        text += (
            f"See it with `sqlite3 {source.path} {where}`, change it there after a backup, and run the "
            "command again."
        )
    return text.strip()
