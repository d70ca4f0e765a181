"""The same code on PostgreSQL: the unit tests in which the database matters most run again there, all of them
in `make test-postgresql`, and the whole stack starts on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub import Hub
from tests.platform.postgres import check_areas, postgresql  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow


def test_runs_and_their_life_hold_on_postgresql_too(postgresql: str) -> None:  # noqa: F811
    check_areas(postgresql, "jobs/scheduling", "jobs/retention", "jobs/checkpoints", whole=("jobs",))


def test_the_whole_stack_runs_on_postgresql(postgresql: str, tmp_path: Path) -> None:  # noqa: F811
    hub = Hub(tmp_path / "data", DATABASE_URL=postgresql)
    try:
        hub.start()
        with hub.client() as client:
            assert client.get("/api/v1/clusters/").status_code == 200
    finally:
        hub.stop()
    assert not list(hub.data_dir.glob("*.sqlite3"))
