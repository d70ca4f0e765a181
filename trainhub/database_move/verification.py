"""Compares what PostgreSQL has with what was read from SQLite: the number of rows and the hash of each
table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

from psycopg import sql

from trainhub.database_move.column_types import target_conversions
from trainhub.database_move.errors import GO_ON, MoveError
from trainhub.database_move.move_record import CopiedPart, MoveRecord
from trainhub.database_move.row_hash import RowHash
from trainhub.database_move.target import TargetDatabase, TargetTable

# Rows between two lines about the progress.
_STEP_ROWS = 500


def verify_table(
    target: TargetDatabase,
    record: MoveRecord,
    table: TargetTable,
    part: CopiedPart,
    advance: Callable[[int], None],
) -> None:
    """Reads a table back. Raises MoveError if it is not what was copied; the next attempt copies it anew."""
    total = hash_target_rows(target, table, advance)
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


def hash_target_rows(target: TargetDatabase, table: TargetTable, advance: Callable[[int], None]) -> RowHash:
    """Reads row by row, because one may have megabytes."""
    total = RowHash(target_conversions(table.columns))
    expressions = [
        sql.SQL(column.expression("{0}")).format(sql.Identifier(column.column)) for column in table.columns
    ]
    statement = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT binary)").format(
        sql.SQL(", ").join(expressions), sql.Identifier(table.name)
    )
    with target.connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types([column.wire_type for column in table.columns])
        rows = copy.rows()
        while True:
            before = total.count
            for row in islice(rows, _STEP_ROWS):
                total.add(row)
            if total.count == before:
                return total
            advance(total.count - before)
