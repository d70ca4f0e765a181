"""What the troubles do to PostgreSQL reaches all of its processes."""

from __future__ import annotations

import select
from pathlib import Path

import psycopg
import pytest

from tests.hosts import processes
from tests.platform.database import Database

pytestmark = pytest.mark.slow


def test_a_stopped_and_a_killed_database_serve_no_open_connection(tmp_path: Path) -> None:
    database = Database(Path("/tmp") / f"trainhub-stopped-{tmp_path.parent.name}-{tmp_path.name}")
    try:
        database.start()
        connection = psycopg.connect(database.url, autocommit=True)
        backend = connection.info.backend_pid
        database.pause()
        connection.pgconn.send_query(b"SELECT 1")
        assert not select.select([connection.fileno()], [], [], 1)[0]
        database.resume()
        assert select.select([connection.fileno()], [], [], 20)[0]
        database.kill()
        assert not processes.lives(backend)
        connection.close()
        database.start()
        with psycopg.connect(database.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        database.remove()
