"""Outages of the database: which errors are of one, and whether it is away now.

The web server's background loop tries the database once a second while it is away (`background_loop`). In
that time requests are refused at once: each would otherwise wait for a connection for 20 s, in a thread that
another one needs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError, connection
from psycopg_pool import PoolTimeout

from workspaces import process_caches

CONNECT_TIMEOUT_S = 10
AWAY = "The hub cannot reach its database at the moment."
NO_CONNECTION = "The hub's database has no connection left."
READ_ONLY = "The hub's database accepts no changes at the moment."
DISK_FULL = "The disk of the hub's database is full."
BUSY = "The hub's database is busy with another change."
# Of SQLSTATE: connection exceptions, and a server that ends or starts.
_AWAY_STATES = ("08", "57P")
_STATES = {"53300": NO_CONNECTION, "53100": DISK_FULL, "25006": READ_ONLY}
_SQLITE = {"readonly database": READ_ONLY, "is full": DISK_FULL, "is locked": BUSY}
_outages: list[str] = []
_changing = threading.Lock()
process_caches.register(_outages.clear)


class DatabaseAway(OperationalError):
    """Raised instead of waiting for a database that is away."""


def outage_of(error: BaseException | None) -> str:
    """Returns the sentence for an error that ends by itself or by the operator's hand; "" for a fault of the
    code."""
    if isinstance(error, DatabaseAway):
        return AWAY
    if not isinstance(error, DatabaseError):
        return ""
    cause = error.__cause__
    state = (cause.sqlstate if isinstance(cause, psycopg.Error) else "") or ""
    if isinstance(cause, PoolTimeout):
        return NO_CONNECTION if not is_away() else AWAY
    if state in _STATES:
        return _STATES[state]
    is_of_connection = isinstance(error, OperationalError | InterfaceError) and (
        state.startswith(_AWAY_STATES) if state else isinstance(cause, psycopg.Error)
    )
    if is_of_connection:
        return AWAY
    return next((sentence for words, sentence in _SQLITE.items() if words in str(error)), "")


def is_away() -> bool:
    return bool(_outages)


def note_away() -> None:
    """From now on requests are refused until `recover` has reached the database."""
    if not _outages:
        _outages.append(AWAY)


def look_into_broken_connection() -> None:
    """Called by background loops when their connection broke: finds out whether the database is away, and
    notes it. Requests that wait for a connection then fail at once.

    The connection may also be one that its thread kept through an outage that has ended. Then the database
    answers, and only the connections of the pool that broke with it are replaced."""
    database = _postgresql()  # no connection to SQLite breaks
    is_reachable = not connection_failure()
    with _changing:
        if is_away():
            return
        if not is_reachable:
            note_away()
            database.close_pool()
        elif database.pool and not database.pool.closed:
            database.pool.check()


def recover() -> bool:
    """Tries to reach a database that is away; returns whether it answers. The connections of before are
    broken, so all are made anew."""
    if not _outages:
        return True
    if connection_failure():
        return False
    with _changing:
        if _outages:
            _postgresql().close_pool()
            _outages.clear()
    return True


def connection_failure() -> str:
    """Returns why PostgreSQL cannot be reached now, past the pool, which would wait; "" if it can."""
    if connection.vendor != "postgresql":
        return ""
    try:
        parameters = _postgresql().get_connection_params()
        psycopg.connect(**{"connect_timeout": CONNECT_TIMEOUT_S, **parameters}).close()
    except psycopg.Error as error:
        return " ".join(str(error).split()) or type(error).__name__
    return ""


def _postgresql() -> Any:
    """Returns the connection; the wrapper of PostgreSQL alone has a pool."""
    return connection


def refuse_if_away() -> None:
    """Raises DatabaseAway while the database is away."""
    if _outages:
        raise DatabaseAway(AWAY)


@contextmanager
def optional_write() -> Iterator[None]:
    """For notes that come with reading, such as when a token was used: a database that accepts no changes can
    still be read."""
    try:
        yield
    except DatabaseError as error:
        if outage_of(error) not in (READ_ONLY, DISK_FULL):
            raise
