"""A limit on the time of a search in the database, for any filter and any length of text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction

from tracking.search.errors import FilterError

# CPU limit of the thread, in which SQLite runs. A search of 100,000 runs takes 0.05 s.
MAX_CPU_S = 2.0
# Limit for each query on a database server such as PostgreSQL.
MAX_WALL_S = 5
# Number of SQLite's virtual machine instructions; about 20 rows of a filter.
_INSTRUCTIONS_BETWEEN_CHECKS = 1000
TOO_SLOW = "The search takes too long; shorten the texts of LIKE and ILIKE, or search in fewer experiments"


@contextmanager
def time_limit() -> Iterator[None]:
    """Raises FilterError if the queries in the block take too long together."""
    connection.ensure_connection()
    with _limited_sqlite() if connection.vendor == "sqlite" else _limited_server():
        yield


@contextmanager
def _limited_sqlite() -> Iterator[None]:
    until = time.thread_time() + MAX_CPU_S
    # SQLite calls the function every so many instructions and interrupts the query when it returns non-zero.
    connection.connection.set_progress_handler(
        lambda: int(time.thread_time() > until), _INSTRUCTIONS_BETWEEN_CHECKS
    )
    try:
        with _as_filter_error("interrupted"):
            yield
    finally:
        connection.connection.set_progress_handler(None, 0)


@contextmanager
def _limited_server() -> Iterator[None]:
    # In a transaction or savepoint of its own: a rollback also resets the limit and keeps the connection
    # usable.
    with _as_filter_error("statement timeout"), transaction.atomic(), connection.cursor() as cursor:
        # SET takes no parameters, set_config does; `true` limits the setting to the current transaction.
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(MAX_WALL_S * 1000)])
        yield
        # Inside an outer transaction the end of this block releases only a savepoint, which would keep the
        # limit.
        cursor.execute("SET LOCAL statement_timeout TO DEFAULT")


@contextmanager
def _as_filter_error(sign: str) -> Iterator[None]:
    """Converts a database error whose text contains `sign` to a FilterError with a remedy."""
    try:
        yield
    except OperationalError as error:
        if sign in str(error):
            raise FilterError(TOO_SLOW, 0) from error
        raise
