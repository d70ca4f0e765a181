"""Compares what PostgreSQL has with what was read from SQLite: the number of rows and the hash of each
table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from psycopg import sql

from trainhub.database_move.column_types import target_conversions
from trainhub.database_move.errors import GO_ON, MoveError
from trainhub.database_move.move_record import CopiedPart, MoveRecord
from trainhub.database_move.row_hash import RowHash
from trainhub.database_move.target import TargetDatabase, TargetTable

# Rows of which the server is asked at once; those of some tables have megabytes.
_BATCH_ROWS, _BATCH_BYTES = 5_000, 8 * 2**20


def verify_table(
    target: TargetDatabase,
    record: MoveRecord,
    table: TargetTable,
    part: CopiedPart,
    advance: Callable[[int], None],
) -> None:
    """Reads a table back. Raises MoveError if it is not what was copied; the next attempt copies it anew."""
    total = hash_target_rows(target, table, part.count, advance)
    if (total.count, total.total) == (part.count, part.total):
        record.save_part(table.name, replace(part, is_verified=True))
        return
    with target.connection.transaction():
        target.connection.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(table.name)))
        record.save_part(table.name, CopiedPart())
    raise MoveError(
        f"Table {table.name} has other content in {target.name} than in SQLite: {total.count:,} rows instead "
        f"of {part.count:,}, or other values. Nobody else may write there. {GO_ON} It copies that table anew."
    )


def hash_target_rows(
    target: TargetDatabase, table: TargetTable, expected: int, advance: Callable[[int], None]
) -> RowHash:
    total = RowHash(target_conversions(table.columns))
    expressions = [
        sql.SQL(column.expression("{0}")).format(sql.Identifier(column.column)) for column in table.columns
    ]
    name = sql.Identifier(table.name)
    query = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(expressions), name)
    with target.connection.transaction(), target.connection.cursor(name="trainhub_move", binary=True) as rows:
        rows.execute(query)
        batch = _batch_rows(target, table, expected)
        while some := rows.fetchmany(batch):
            for row in some:
                total.add(row)
            advance(len(some))
    return total


def _batch_rows(target: TargetDatabase, table: TargetTable, count: int) -> int:
    """Returns for how many rows to ask at once, from the mean size of a row on the disk."""
    (size,) = target.connection.execute(
        "SELECT pg_table_size(%s::regclass)", (f'"{table.name}"',)
    ).fetchone() or (0,)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * count // max(int(size), 1)))
