"""What must agree before rows are copied: versions, tables and columns."""

from __future__ import annotations

from collections.abc import Collection

from trainhub import __version__
from trainhub.backup.database_copy import own_migrations
from trainhub.database_move.errors import MoveError
from trainhub.database_move.source import SourceDatabase
from trainhub.database_move.target import TargetTable


def check_versions(source: SourceDatabase) -> None:
    """Raises MoveError unless the source has exactly the migrations of this version."""
    applied, own = source.migrations(), own_migrations()
    if unknown := sorted(applied - own):
        raise MoveError(
            f"{source.path} was written by a newer TrainHub than {__version__}: it has the migration "
            f"{unknown[0]}, which this one does not know. Install that version, and run the command with it."
        )
    if missing := sorted(own - applied):
        raise MoveError(
            f"{source.path} is of an older TrainHub: it lacks the migration {missing[0]}. Start the hub once "
            "on it with this version, stop it, and run the command again."
        )


def check_tables(source: SourceDatabase, tables: list[TargetTable], excluded: Collection[str]) -> None:
    """Raises MoveError if the source has tables or columns that the target has not, or the other way."""
    existing = source.tables()
    if unknown := sorted(set(existing) - {table.name for table in tables} - set(excluded)):
        raise MoveError(
            f"{source.path} has the table {unknown[0]}, which this version lacks with these settings. "
            "Set the settings of the hub, for example those of its sign-in; if the table is not TrainHub's, "
            f"add --leave-out {unknown[0]}."
        )
    for table in tables:
        differing = set(existing.get(table.name, ())) ^ set(table.column_names)
        if differing:
            raise MoveError(
                f"Table {table.name} has not the same fields in {source.path} as in this version of "
                f"TrainHub: {', '.join(sorted(differing))}. Start the hub once on it with this version, stop "
                "it, and run the command again."
            )
        for column in table.columns:
            if not column.is_supported:
                raise MoveError(
                    f"Table {table.name} has the field {column.column} of the type {column.name}, which this "
                    "command does not know. Please report this."
                )
