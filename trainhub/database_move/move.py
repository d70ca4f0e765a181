"""Moves a hub's database from SQLite to PostgreSQL: check, copy, verify, and make the rest of the schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from psycopg import sql

from trainhub.database_move import move_record
from trainhub.database_move.errors import MoveError, database_sentences
from trainhub.database_move.move_checks import check_tables, check_versions
from trainhub.database_move.move_record import CopiedPart, MoveRecord
from trainhub.database_move.progress import RowProgress
from trainhub.database_move.source import SourceDatabase, opened_source
from trainhub.database_move.suspended_indexes import restore_indexes, suspend_indexes
from trainhub.database_move.table_copy import TableCopier
from trainhub.database_move.target import TargetDatabase, TargetTable, opened_target
from trainhub.database_move.value_check import check_values
from trainhub.database_move.verification import verify_table


@dataclass(frozen=True)
class MoveOptions:
    """`source`: SQLite's file. `target`: the URL of PostgreSQL. `is_nul_replaced`: NUL characters become
    U+FFFD. `excluded`: tables of SQLite that this version does not know and that are not copied."""

    source: Path
    target: str
    is_nul_replaced: bool = False
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True)
class MoveConsole:
    """`say` gets sentences, `show` the line of progress, which on a terminal replaces the one before."""

    say: Callable[[str], None]
    show: Callable[[str], None]
    is_terminal: bool


@dataclass(frozen=True)
class FinishedMove:
    target: str
    tables: int
    rows: int


def move_database(options: MoveOptions, console: MoveConsole) -> FinishedMove:
    """Raises MoveError. The source stays as it is; whatever stops a move, the same call goes on with it."""
    with (
        opened_source(options.source) as source,
        opened_target(options.target) as target,
        database_sentences(target.name),
    ):
        return _Move(options, console, source, target).run()


class _Move:
    def __init__(
        self, options: MoveOptions, console: MoveConsole, source: SourceDatabase, target: TargetDatabase
    ) -> None:
        self._options, self._console = options, console
        self._source, self._target = source, target
        self._record = MoveRecord(target)

    def run(self) -> FinishedMove:
        check_versions(self._source)
        tables = self._prepare()
        counts = {table.name: self._source.count(table.name) for table in tables}
        self._copy(tables, counts)
        self._verify(tables, counts)
        self._console.say("Making indexes and checking constraints …")
        restore_indexes(self._target, self._record, self._show_statement)
        self._set_sequences(tables)
        self._target.run("VACUUM ANALYZE")
        self._record.remove()
        return FinishedMove(self._target.name, len(tables), sum(counts.values()))

    def _prepare(self) -> list[TargetTable]:
        """Returns the tables to copy, in a target that is ready for their rows."""
        existing = self._target.tables()
        if existing and move_record.MOVE not in existing:
            raise MoveError(
                f"{self._target.name} has tables in it. Name an empty one: CREATE DATABASE …, owned by the "
                "account of DATABASE_URL."
            )
        if not existing:
            self._record.begin()
        if self._record.stage() == move_record.MIGRATING:
            self._console.say(f"Making the tables in {self._target.name} …")
            self._target.migrate()
        tables = [table for name, table in self._target.tables().items() if name not in move_record.NAMES]
        is_resumed = self._record.stage() == move_record.COPYING
        if is_resumed and self._record.source() == self._source.fingerprint:
            self._console.say("Going on with the move that was interrupted.")
            return tables
        check_tables(self._source, tables, self._options.excluded)
        self._console.say(f"Checking {self._source.path} …")
        check_values(self._source, tables, is_nul_replaced=self._options.is_nul_replaced)
        if is_resumed:
            self._console.say(f"{self._source.path} was written since the move began, which begins anew.")
        self._begin_copying(tables)
        return tables

    def _begin_copying(self, tables: list[TargetTable]) -> None:
        with self._target.connection.transaction():
            suspend_indexes(self._target, self._record)
            names = sql.SQL(", ").join(sql.Identifier(table.name) for table in tables)
            # Migrations have written rows, too.
            self._target.connection.execute(sql.SQL("TRUNCATE {}").format(names))
            self._record.begin_copying(self._source.fingerprint)

    def _copy(self, tables: list[TargetTable], counts: dict[str, int]) -> None:
        parts = self._record.parts()
        progress = self._progress("Copied", sum(counts.values()))
        for table in tables:
            part = parts.get(table.name, CopiedPart())
            progress.skip(part.count)
            if not part.is_complete:
                advance = partial(progress.advance, table.name)
                is_nul_replaced = self._options.is_nul_replaced
                copier = TableCopier(self._source, table, part, advance, is_nul_replaced=is_nul_replaced)
                copier.copy(self._target, self._record)
        self._console.say(progress.summary())

    def _verify(self, tables: list[TargetTable], counts: dict[str, int]) -> None:
        progress = self._progress("Verified", sum(counts.values()))
        for table in tables:
            part = self._record.parts()[table.name]
            if part.is_verified:
                progress.skip(part.count)
            else:
                advance = partial(progress.advance, table.name)
                verify_table(self._target, self._record, table, part, advance)
            # The source as it is now, not as it was copied.
            if part.count != counts[table.name]:
                raise MoveError(f"Table {table.name} was not copied as a whole. Please report this.")
        self._console.say(progress.summary())

    def _set_sequences(self, tables: list[TargetTable]) -> None:
        """Lets each go on after the highest number that was ever given, also to a row that is deleted."""
        highest = self._source.sequences()
        for table in tables:
            for column, sequence in table.sequences.items():
                query = sql.SQL(
                    "SELECT setval({sequence}, greatest(max({column}), {highest})) FROM {table} "
                    "HAVING greatest(max({column}), {highest}) > 0"
                )
                parts = {"sequence": sequence, "highest": highest.get(table.name, 0)}
                names = {"column": sql.Identifier(column), "table": sql.Identifier(table.name)}
                values = {name: sql.Literal(value) for name, value in parts.items()}
                self._target.connection.execute(query.format(**values, **names))

    def _progress(self, verb: str, total: int) -> RowProgress:
        return RowProgress(verb, total, self._console.show, is_terminal=self._console.is_terminal)

    def _show_statement(self, done: int, total: int) -> None:
        if self._console.is_terminal:
            self._console.show(f"{done} of {total}")
