"""The drill on PostgreSQL, from one database into another of the same server."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.backup import drill, hubs
from tests.backup.hubs import hub_at, other_hub
from tests.hub import Hub
from tests.platform.postgres import postgresql  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow


def test_a_hub_on_postgresql_is_restored(postgresql: str, tmp_path: Path) -> None:  # noqa: F811
    hub = hub_at(tmp_path, DATABASE_URL=postgresql)
    second = f"{postgresql.rpartition('/')[0]}/second"
    restored = other_hub(tmp_path, DATABASE_URL=second)
    try:
        hub.start()
        refused = restored_into_used(hub, tmp_path)
        assert "has tables in it" in refused
        create_database(postgresql, "second")
        drill.check_drill(hub, restored, tmp_path)
    finally:
        hub.stop()
        restored.stop()


def restored_into_used(hub: Hub, folder: Path) -> str:
    """What a restoration into the database of `hub` says, with another data folder."""
    hub.manage("backup", str(folder / "first"))
    beside = hub_at(folder / "beside", DATABASE_URL=hub.settings["DATABASE_URL"])
    return hubs.refusal(beside, "restore", str(folder / "first"))


def create_database(url: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
