"""What stops a move."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

GO_ON = "Run the same command again: it goes on where it stopped."


class MoveError(Exception):
    """The database cannot be moved. The message is for the operator, with a remedy."""


@contextmanager
def database_sentences(target: str) -> Iterator[None]:
    """Turns errors of both databases into MoveError. `target`: the name of PostgreSQL's for messages."""
    try:
        yield
    except sqlite3.Error as error:
        raise MoveError(f"SQLite cannot read the database: {error}. Restore it from a backup.") from error
    except psycopg.errors.DiskFull as error:
        raise MoveError(f"The disk of {target} is full. Free space there. {GO_ON}") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise MoveError(
            f"The account may not do this in {target}: {_first_line(error)}. Make it the owner of the "
            f"database (ALTER DATABASE … OWNER TO …). {GO_ON}"
        ) from error
    except psycopg.OperationalError as error:
        raise MoveError(
            f"{target} cannot be used: {_first_line(error)}. Once it can, go on. {GO_ON}"
        ) from error
    except psycopg.Error as error:
        raise MoveError(f"{target} refuses the data: {_first_line(error)}.") from error


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__
