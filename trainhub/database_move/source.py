"""The SQLite database that is moved: read from one moment, while nobody may write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trainhub.database_move.errors import MoveError

SHORT_WAIT_S = 5


@dataclass(frozen=True)
class SourceDatabase:
    """`path`: of the file, for messages. `fingerprint`: differs if the file has been written since."""

    path: Path
    fingerprint: str
    connection: sqlite3.Connection

    def tables(self) -> dict[str, list[str]]:
        """Returns the columns of each table."""
        names = self.connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
        return {
            name: [row[1] for row in self.connection.execute(f"PRAGMA table_info({sqlite_identifier(name)})")]
            for (name,) in names.fetchall()
        }

    def migrations(self) -> set[str]:
        """Returns the migrations that were applied, as app.name. Raises MoveError if it is no hub's."""
        try:
            rows = self.connection.execute("SELECT app, name FROM django_migrations")
            return {f"{app}.{name}" for app, name in rows}
        except sqlite3.OperationalError as error:
            raise MoveError(
                f"{self.path} is not the database of a hub: it has no table django_migrations. Name the "
                "file with --from."
            ) from error

    def count(self, table: str) -> int:
        query = f"SELECT count(*) FROM {sqlite_identifier(table)}"
        return int(self.connection.execute(query).fetchone()[0])

    def rows(self, table: str, columns: Sequence[str], after: int) -> Iterator[tuple[Any, ...]]:
        """Yields rowid and columns of all rows whose rowid is greater than `after`, in its order."""
        names = ", ".join(map(sqlite_identifier, columns))
        yield from self.connection.execute(
            f"SELECT rowid, {names} FROM {sqlite_identifier(table)} WHERE rowid > ? ORDER BY rowid", (after,)
        )

    def sequences(self) -> dict[str, int]:
        """Returns the highest number that each table with AUTOINCREMENT has ever given."""
        with suppress(sqlite3.OperationalError):  # no table has one
            return dict(self.connection.execute("SELECT name, seq FROM sqlite_sequence"))
        return {}

    def broken_references(self, limit: int) -> list[tuple[str, int, str]]:
        """Returns table, rowid and referenced table of rows whose foreign key leads nowhere."""
        rows = self.connection.execute("PRAGMA foreign_key_check").fetchmany(limit)
        return [(table, rowid, parent) for table, rowid, parent, _ in rows]


@contextmanager
def opened_source(path: Path) -> Iterator[SourceDatabase]:
    """Opens the file and keeps others from writing to it. Raises MoveError."""
    if not path.is_file():
        raise MoveError(f"{path} does not exist. Name the hub's SQLite database with --from.")
    uri = f"file:{quote(str(path.resolve()))}"
    try:
        with closing(sqlite3.connect(f"{uri}?mode=rw", uri=True, timeout=SHORT_WAIT_S)) as connection:
            connection.isolation_level = None
            # What is in the write-ahead log comes into the file, whose size and time then say whether it has
            # changed.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            connection.execute("BEGIN IMMEDIATE")
            facts = path.stat()
            yield SourceDatabase(path, f"{facts.st_size} {facts.st_mtime_ns}", connection)
    except sqlite3.DatabaseError as error:
        raise _opening_error(path, error) from error


def _opening_error(path: Path, error: sqlite3.DatabaseError) -> MoveError:
    text = str(error)
    if "locked" in text:
        return MoveError(f"Another program writes to {path}. Stop the hub and what else uses it.")
    if "readonly" in text or "unable to open" in text:
        return MoveError(
            f"{path} cannot be opened for writing, by which others are kept from it: {text}. Run this "
            "command as the hub's account, or copy the file to where you may write and name the copy with "
            "--from."
        )
    if "not a database" in text:
        return MoveError(f"{path} is no SQLite database. Name the hub's with --from.")
    return MoveError(f"{path} cannot be read: {text}. Restore it from a backup.")


def sqlite_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
