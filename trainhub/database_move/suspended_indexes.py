"""Indexes and constraints, without which rows are copied several times as fast. They are made again at the
end, and thereby checked."""

from __future__ import annotations

from collections.abc import Callable

from psycopg import sql

from trainhub.database_move.move_record import NAMES, MoveRecord
from trainhub.database_move.target import TargetDatabase

_CONSTRAINTS = """
    SELECT t.relname, c.conname, pg_get_constraintdef(c.oid)
    FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
    WHERE c.connamespace = current_schema()::regnamespace AND c.contype IN ('u', 'f')
    ORDER BY c.contype = 'u', t.relname, c.conname"""
_INDEXES = """
    SELECT i.relname, pg_get_indexdef(i.oid)
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
    WHERE i.relnamespace = current_schema()::regnamespace AND NOT x.indisprimary AND t.relname <> ALL (%s)
      AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.oid AND c.contype IN ('u', 'x'))
    ORDER BY t.relname, i.relname"""


def suspend_indexes(target: TargetDatabase, record: MoveRecord) -> None:
    """Drops them and records how they are made. Call it in a transaction."""
    constraints = target.connection.execute(_CONSTRAINTS).fetchall()
    indexes = target.connection.execute(_INDEXES, (list(NAMES),)).fetchall()
    for table, name, _ in constraints:
        parts = {"table": sql.Identifier(table), "name": sql.Identifier(name)}
        target.connection.execute(sql.SQL("ALTER TABLE {table} DROP CONSTRAINT {name}").format(**parts))
    for name, _ in indexes:
        target.connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    for _, definition in indexes:
        record.add_statement(definition)
    for table, name, definition in constraints:
        names = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} ").format(
            sql.Identifier(table), sql.Identifier(name)
        )
        record.add_statement(names.as_string(target.connection) + definition)


def restore_indexes(target: TargetDatabase, record: MoveRecord, progress: Callable[[int, int], None]) -> None:
    """Makes them again, each with the note that it is made; `progress` gets how many of how many are."""
    statements = record.statements()
    for done, (position, text) in enumerate(statements):
        progress(done, len(statements))
        with target.connection.transaction():
            target.run(text)
            record.forget_statement(position)
