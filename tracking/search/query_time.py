"""A limit on the time that a search may take in the database, whatever its filter and the texts that it looks at."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection

from tracking.search.errors import FilterError

MAX_CPU_S = 2.0
"""Of this thread, in which SQLite works. A search of 100,000 runs takes 0.05 s."""
MAX_WALL_S = 5
"""Of a server such as PostgreSQL, for each query."""
_INSTRUCTIONS_BETWEEN_CHECKS = 1000
"""SQLite's own instructions: some 20 rows of a filter."""
TOO_SLOW = "The search takes too long; shorten the texts of LIKE and ILIKE, or search in fewer experiments"


@contextmanager
def limited() -> Iterator[None]:
    """Raises FilterError when the queries inside take too long together."""
    connection.ensure_connection()
    on, off = _sqlite if connection.vendor == "sqlite" else _server
    on()
    try:
        yield
    except OperationalError as error:
        if any(word in str(error) for word in ("interrupted", "statement timeout")):
            raise FilterError(TOO_SLOW, 0) from error
        raise
    finally:
        off()


def _limit_sqlite() -> None:
    until = time.thread_time() + MAX_CPU_S
    connection.connection.set_progress_handler(lambda: int(time.thread_time() > until), _INSTRUCTIONS_BETWEEN_CHECKS)


def _unlimit_sqlite() -> None:
    connection.connection.set_progress_handler(None, 0)


def _limit_server() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [str(MAX_WALL_S * 1000)])


def _unlimit_server() -> None:
    # A transaction that has failed takes no further statement; its end undoes the setting.
    if not (connection.in_atomic_block and sys.exc_info()[0]):
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")


_sqlite = _limit_sqlite, _unlimit_sqlite
_server = _limit_server, _unlimit_server
