"""A hub's SQLite database with values of every kind, and empty databases of PostgreSQL."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from tests import migrated
from tests.backup.hubs import hub_at
from tests.hub import Hub

_numbers = itertools.count()
EVENT = (
    "INSERT INTO workspaces_auditevent (at, actor, verb, subject, detail, seal) VALUES "
    "(?, ?, 'person.created', 'somebody', ?, '')"
)
MANY = 200_000
_MANY_EVENTS = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
    INSERT INTO workspaces_auditevent (at, actor, verb, subject, detail, seal)
    SELECT '2026-11-29 20:15:00.000001', 'nobody', 'person.created', 'number ' || i,
           '{"n": ' || i || '}', ''
    FROM n"""


def source_hub(folder: Path) -> Hub:
    hub = hub_at(folder)
    migrated.put_into(hub.data_dir)
    return hub


@contextmanager
def opened(hub: Hub) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(hub.data_dir / migrated.NAME)) as connection:
        yield connection
        connection.commit()


def add_event(hub: Hub, actor: str, detail: str = "{}", at: str = "2026-11-29 20:15:00") -> int:
    with opened(hub) as connection:
        return connection.execute(EVENT, (at, actor, detail)).lastrowid or 0


def add_many_events(hub: Hub) -> None:
    with opened(hub) as connection:
        connection.execute(_MANY_EVENTS, (MANY,))


def empty_database(url: str) -> str:
    """The URL of a new database on that server."""
    name = f"moved_{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{url.rpartition('/')[0]}/{name}"
