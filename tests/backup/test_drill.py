"""The drill: a hub is backed up while it works, and restored as another hub."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.backup import drill
from tests.backup.hubs import hub_at, other_hub
from tests.hub import PROJECT, Hub

pytestmark = pytest.mark.slow


@pytest.fixture
def backed_up_hub(tmp_path: Path) -> Iterator[Hub]:
    hub = hub_at(tmp_path / "here")
    try:
        yield hub.start()
    finally:
        hub.stop()


def test_a_hub_is_restored_on_another_machine(backed_up_hub: Hub, tmp_path: Path) -> None:
    restored = other_hub(tmp_path)
    try:
        drill.check_drill(backed_up_hub, restored, tmp_path)
    finally:
        restored.stop()


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
