"""The PostgreSQL into which a hub is moved."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dj_database_url
import psycopg
from psycopg.conninfo import make_conninfo

from trainhub.database_move.column_types import ColumnType
from trainhub.database_move.errors import GO_ON, MoveError, database_sentences
from trainhub.installation import BASE_DIR

OLDEST_VERSION = 140_000
# Of the advisory lock that a move holds: "TrainHub" as a number.
_LOCK = 0x5472_6169_6E48_7562
_TABLES = """
    SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
           pg_get_serial_sequence(quote_ident(c.relname), a.attname)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0
      AND NOT a.attisdropped
    ORDER BY c.relname, a.attnum"""


@dataclass(frozen=True)
class TargetTable:
    """`sequences`: the sequence of each column that has one."""

    name: str
    columns: list[ColumnType]
    sequences: dict[str, str]

    @property
    def column_names(self) -> list[str]:
        return [column.column for column in self.columns]


@dataclass(frozen=True)
class TargetDatabase:
    """`name`: for messages, without the password. `url`: with it, as in DATABASE_URL."""

    name: str
    url: str
    connection: psycopg.Connection[tuple[Any, ...]]

    def tables(self) -> dict[str, TargetTable]:
        tables: dict[str, TargetTable] = {}
        for name, column, kind, sequence in self.connection.execute(_TABLES).fetchall():
            table = tables.setdefault(name, TargetTable(name, [], {}))
            table.columns.append(ColumnType(column, kind))
            if sequence is not None:
                table.sequences[column] = sequence
        return tables

    def run(self, statement: str) -> None:
        """Executes a statement whose text PostgreSQL itself has made, or that holds no foreign words."""
        self.connection.execute(statement)

    def migrate(self) -> None:
        """Applies all migrations of this version, in a process that has this database as the hub's. Raises
        MoveError."""
        done = subprocess.run(
            [sys.executable, "manage.py", "migrate", "--verbosity=0", "--no-input"],
            cwd=BASE_DIR,
            env={**os.environ, "DATABASE_URL": self.url},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise MoveError(f"The tables could not be made in {self.name}: {reason.rstrip('.')}. {GO_ON}")


@contextmanager
def opened_target(url: str) -> Iterator[TargetDatabase]:
    """Connects, and keeps other moves from the database. Raises MoveError."""
    name, address = _address(url)
    with database_sentences(name):
        connection = psycopg.connect(address, autocommit=True, connect_timeout=20)
    with connection, database_sentences(name):
        # The text of times without a zone means UTC, as in SQLite. What a crash of the server may lose is
        # lost together with the record of it.
        connection.execute("SET TIME ZONE 'UTC'")
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET datestyle = ISO, YMD")
        target = TargetDatabase(name, url, connection)
        _check_server(target)
        yield target


def _address(url: str) -> tuple[str, str]:
    """Returns the database's name for messages, and its address for libpq. Raises MoveError."""
    try:
        parts = dj_database_url.parse(url)
    except (ValueError, dj_database_url.ParseError) as error:
        raise MoveError("--to is no address like postgres://user:password@host/name.") from error
    if parts.get("ENGINE") != "django.db.backends.postgresql" or not parts.get("NAME"):
        raise MoveError(
            "--to is no address of a PostgreSQL database like postgres://user:password@host/name."
        )
    values = {
        "host": parts.get("HOST"),
        "port": parts.get("PORT"),
        "user": parts.get("USER"),
        "password": parts.get("PASSWORD"),
        "dbname": parts["NAME"],
        **parts.get("OPTIONS", {}),
    }
    address = make_conninfo("", **{key: value for key, value in values.items() if value})
    return f"the database {parts['NAME']} on {parts.get('HOST') or 'this machine'}", address


def _check_server(target: TargetDatabase) -> None:
    """Raises MoveError if the database cannot become a hub's."""
    version = target.connection.info.server_version
    if version < OLDEST_VERSION:
        raise MoveError(f"{target.name} is of version {version // 10_000}. Use PostgreSQL 14 or newer.")
    row = target.connection.execute(
        "SELECT current_setting('server_encoding'), current_setting('transaction_read_only'), "
        "current_schema(), has_schema_privilege(current_schema(), 'CREATE'), pg_try_advisory_lock(%s)",
        (_LOCK,),
    ).fetchone()
    encoding, is_read_only, schema, may_create, is_alone = row or ()
    if encoding != "UTF8":
        raise MoveError(
            f"{target.name} has the encoding {encoding}. Make one with CREATE DATABASE … ENCODING 'UTF8' "
            "TEMPLATE template0."
        )
    if is_read_only == "on":
        raise MoveError(f"{target.name} is read-only: a standby, or set so. Name the primary server.")
    if not schema or not may_create:
        raise MoveError(
            f"The account may make no tables in {target.name}. Make it the owner: ALTER DATABASE … OWNER "
            "TO …."
        )
    if not is_alone:
        raise MoveError(f"Another move into {target.name} is running. Wait for its end.")
