"""The record of a move in the target: what is copied already, and what has to be made again at the end."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from trainhub.database_move.target import TargetDatabase

MOVE, TABLE, STATEMENT = "trainhub_move", "trainhub_move_table", "trainhub_move_statement"
NAMES = (MOVE, TABLE, STATEMENT)
MIGRATING, COPYING = "migrating", "copying"


@dataclass(frozen=True)
class CopiedPart:
    """What of a table is copied: all rows up to `last_rowid`, `count` of them, with their hash."""

    last_rowid: int = -(2**63)
    count: int = 0
    total: int = 0
    is_complete: bool = False
    is_verified: bool = False


def is_move_unfinished() -> bool:
    """Returns whether a move into the hub's own database was interrupted."""
    return MOVE in connection.introspection.table_names()


class MoveRecord:
    def __init__(self, target: TargetDatabase) -> None:
        self._target = target
        self._connection = target.connection

    def begin(self) -> None:
        with self._connection.transaction():
            self._target.run(f"CREATE TABLE {MOVE} (stage text, source text, started_at timestamptz)")
            self._target.run(
                f"CREATE TABLE {TABLE} (name text PRIMARY KEY, last_rowid bigint, count bigint, total text, "
                "is_complete boolean, is_verified boolean)"
            )
            self._target.run(f"CREATE TABLE {STATEMENT} (position serial PRIMARY KEY, text text)")
            self._target.run(f"INSERT INTO {MOVE} VALUES ('{MIGRATING}', '', now())")

    def stage(self) -> str:
        return str(self._value(f"SELECT stage FROM {MOVE}"))

    def source(self) -> str:
        """Returns the fingerprint of the source of which rows are copied."""
        return str(self._value(f"SELECT source FROM {MOVE}"))

    def begin_copying(self, fingerprint: str) -> None:
        """Forgets what is copied: from now on rows of the source with this fingerprint are. Call it in the
        transaction that removes the rows."""
        self._target.run(f"DELETE FROM {TABLE}")
        self._connection.execute(f"UPDATE {MOVE} SET stage = %s, source = %s", (COPYING, fingerprint))

    def parts(self) -> dict[str, CopiedPart]:
        rows = self._connection.execute(
            f"SELECT name, last_rowid, count, total, is_complete, is_verified FROM {TABLE}"
        )
        return {
            name: CopiedPart(last_rowid, count, int(total), is_complete, is_verified)
            for name, last_rowid, count, total, is_complete, is_verified in rows.fetchall()
        }

    def save_part(self, table: str, part: CopiedPart) -> None:
        """Call it in the transaction that writes the rows."""
        self._connection.execute(
            f"INSERT INTO {TABLE} VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (name) DO UPDATE SET "
            "(last_rowid, count, total, is_complete, is_verified) = (excluded.last_rowid, excluded.count, "
            "excluded.total, excluded.is_complete, excluded.is_verified)",
            (table, part.last_rowid, part.count, str(part.total), part.is_complete, part.is_verified),
        )

    def add_statement(self, text: str) -> None:
        self._connection.execute(f"INSERT INTO {STATEMENT} (text) VALUES (%s)", (text,))

    def statements(self) -> list[tuple[int, str]]:
        """Returns what has to be executed at the end, with its position. Foreign keys come last: they may
        need a unique constraint."""
        rows = self._connection.execute(
            f"SELECT position, text FROM {STATEMENT} ORDER BY strpos(text, ' FOREIGN KEY ') > 0, position"
        )
        return [(position, text) for position, text in rows.fetchall()]

    def forget_statement(self, position: int) -> None:
        self._connection.execute(f"DELETE FROM {STATEMENT} WHERE position = %s", (position,))

    def remove(self) -> None:
        """The move is over, and the database is a hub's."""
        self._target.run(f"DROP TABLE {', '.join(NAMES)}")

    def _value(self, query: str) -> object:
        row = self._connection.execute(query).fetchone()
        return row[0] if row else None
