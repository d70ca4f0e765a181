"""The drill: a hub is backed up while it works, and restored as another hub."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests import runs
from tests.backup import drill
from tests.backup.hubs import hub_at, other_hub
from tests.hub import PROJECT, Hub, eventually
from tests.platform.postgres import postgresql  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow


@pytest.fixture
def backed_up_hub(tmp_path: Path) -> Iterator[Hub]:
    hub = hub_at(tmp_path / "here")
    try:
        yield hub.start()
    finally:
        hub.stop()


def check_drill(hub: Hub, restored: Hub, folder: Path) -> None:
    """Backs up `hub` while one run writes and another ends, and restores it as `restored`."""
    before = drill.fill(hub)
    writer, ending = runs.submit(hub, drill.WRITES), runs.submit(hub, drill.ENDS.format(seconds=2))
    eventually(lambda: len(runs.log(hub, writer)) > 10_000, 60, "the run writes")
    hub.manage("backup", str(folder / "backups"), "--with-keys", str(folder / "keys"))
    during = len(runs.log(hub, writer))
    runs.wait_for(hub, ending, "Completed")
    with hub.client() as client:
        client.post(f"/api/v1/runs/{writer}/cancel/").raise_for_status()
    runs.wait_for(hub, writer)
    whole = runs.log(hub, writer)
    verified = hub.manage("backup", "--verify", str(folder / "backups"))
    assert "is whole" in verified.stdout
    backup = drill.backup_of(folder / "backups")
    assert drill.manifest(backup)["missing_count"] == 0
    left_out = drill.manifest(backup)["left_out"]
    assert [name for name, why in left_out.items() if "unknown" in why] == []
    hub.stop()

    said = restored.manage("restore", str(folder / "backups"), "--keys", str(folder / "keys")).stdout
    assert "is missing" not in said
    assert restored.settings["SECRETS_KEYRING"] != hub.settings["SECRETS_KEYRING"]
    kept = (restored.data_dir / "runs" / writer / "1" / "logs" / drill.LOG).read_bytes()
    assert whole.startswith(kept)
    assert len(kept) <= during
    restored.token = hub.token
    restored.start()
    before.check(restored)
    assert restored.manage("secrets", "check").returncode == 0
    assert restored.manage("audit", "verify").returncode == 0
    (folder / "net.zip").write_bytes(drill.model_zip(restored))
    assert "verified" in restored.manage("model", "verify", str(folder / "net.zip")).stdout.lower()
    again = runs.submit(restored, "print('after the restoration')")
    runs.wait_for(restored, again, "Completed")


def test_a_hub_is_restored_on_another_machine(backed_up_hub: Hub, tmp_path: Path) -> None:
    restored = other_hub(tmp_path)
    try:
        check_drill(backed_up_hub, restored, tmp_path)
    finally:
        restored.stop()


def test_a_hub_on_postgresql_is_restored(postgresql: str, tmp_path: Path) -> None:  # noqa: F811
    hub = hub_at(tmp_path, DATABASE_URL=postgresql)
    second = f"{postgresql.rpartition('/')[0]}/second"
    restored = other_hub(tmp_path, DATABASE_URL=second)
    try:
        hub.start()
        refused = restored_into_used(hub, tmp_path)
        assert "has tables in it" in refused
        create_database(postgresql, "second")
        check_drill(hub, restored, tmp_path)
    finally:
        hub.stop()
        restored.stop()


def restored_into_used(hub: Hub, folder: Path) -> str:
    """What a restoration into the database of `hub` says, with another data folder."""
    hub.manage("backup", str(folder / "first"))
    beside = Hub(folder / "beside" / "data", DATABASE_URL=hub.settings["DATABASE_URL"])
    beside.data_dir.parent.mkdir()
    done = beside.manage("restore", str(folder / "first"), check=False)
    assert done.returncode
    return done.stderr


def create_database(url: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")


def test_without_keys_it_says_what_is_lost(backed_up_hub: Hub, tmp_path: Path) -> None:
    before = drill.fill(backed_up_hub)
    backed_up_hub.manage("backup", str(tmp_path / "backups"))
    backed_up_hub.stop()
    secret_bytes = [
        path.read_bytes().strip()
        for path in (
            backed_up_hub.data_dir / "secret-key",
            backed_up_hub.data_dir / "keys/model-signing.pem",
            backed_up_hub.data_dir.with_name("data.keyring") / "keys",
        )
    ]
    for path in (tmp_path / "backups").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [key for key in secret_bytes if key in content], path
    restored = other_hub(tmp_path)
    try:
        said = restored.manage("restore", str(tmp_path / "backups")).stdout
        for name in ("data.keyring/keys", "secret-key", "model-signing.pem"):
            assert f"{name} is missing" in said
        restored.token = backed_up_hub.token
        restored.start()
        before.check(restored)
        checked = restored.manage("secrets", "check", check=False)
        assert checked.returncode == 1
        assert "PHRASE" in checked.stdout + checked.stderr
        (tmp_path / "net.zip").write_bytes(drill.model_zip(restored))
        assert "verified" in restored.manage("model", "verify", str(tmp_path / "net.zip")).stdout.lower()
    finally:
        restored.stop()


def test_an_older_backup_is_migrated(backed_up_hub: Hub, tmp_path: Path) -> None:
    backed_up_hub.stop()
    with closing(sqlite3.connect(backed_up_hub.data_dir / "trainhub.sqlite3")) as database:
        count = "SELECT count(*) FROM django_migrations"
        (newest,) = database.execute(count).fetchone()
    restored = other_hub(tmp_path)
    *_, previous, last = sorted(path.stem for path in (PROJECT / "tracking/migrations").glob("0*.py"))
    backed_up_hub.manage("migrate", "tracking", previous)
    backed_up_hub.manage("backup", str(tmp_path / "backups"))
    said = restored.manage("restore", str(tmp_path / "backups")).stdout
    assert "was migrated" in said
    with closing(sqlite3.connect(restored.data_dir / "trainhub.sqlite3")) as database:
        assert database.execute(count).fetchone() == (newest,)
        assert database.execute("SELECT 1 FROM django_migrations WHERE name = ?", [last]).fetchone()
