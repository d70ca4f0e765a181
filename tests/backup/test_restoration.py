"""What a restoration refuses, and that it goes on after an interruption."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from tests.backup import hubs
from tests.backup.drill import backup_of
from tests.hub import Hub

pytestmark = pytest.mark.slow


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    hub = hubs.stopped_hub(tmp_path)
    hub.manage("backup", str(tmp_path / "backups"), "--with-keys", str(tmp_path / "keys"), "--copy")
    return hub


@pytest.fixture
def backups(hub: Hub, tmp_path: Path) -> Path:
    return tmp_path / "backups"


def edit_manifest(folder: Path, **values: Any) -> None:
    path = backup_of(folder) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def is_untouched(hub: Hub) -> bool:
    """Whether nothing was restored."""
    files = [path for path in hub.data_dir.rglob("*") if path.is_file()]
    return [path.name for path in files if path.parent.name != "run"] == []


def test_everything_comes_back(hub: Hub, backups: Path, tmp_path: Path) -> None:
    restored = hubs.other_hub(tmp_path)
    restored.manage("restore", str(backups), "--keys", str(tmp_path / "keys"))
    names = [hubs.LOG, "keys/public/ab.pem", *hubs.KEYS]
    for path in (*map(hub.data_dir.joinpath, names), *(hub.data_dir / "blobs").glob("*/*")):
        copy = restored.data_dir / path.relative_to(hub.data_dir)
        assert copy.read_bytes() == path.read_bytes()
        assert copy.stat().st_mode & 0o077 == 0
    assert (restored.data_dir / hubs.LOG).stat().st_mtime_ns == (hub.data_dir / hubs.LOG).stat().st_mtime_ns
    assert Path(restored.settings["SECRETS_KEYRING"]).read_bytes() == b"00000000 the key\n"
    assert not (restored.data_dir / "restore-unfinished").exists()
    said = hubs.refusal(restored, "restore", str(backups))
    assert "has tables in it" in said


def test_damaged_files_are_named_before_anything_is_written(hub: Hub, backups: Path, tmp_path: Path) -> None:
    log = backup_of(backups) / "files" / hubs.LOG
    log.write_bytes(b"LINE\n" * 2000)
    first, second, _ = sorted((backups / "blobs").glob("*/*"))
    first.unlink()
    second.chmod(0o600)
    second.write_bytes(b"short")
    restored = hubs.other_hub(tmp_path)
    for said in (
        hubs.refusal(hub, "backup", "--verify", str(backups)),
        hubs.refusal(restored, "restore", str(backups)),
    ):
        assert f"{log}: has another content" in said
        assert f"{first}: is missing" in said
        assert f"{second}: has 5 bytes instead of 6000" in said
        assert "3 of 8 files" in said
    assert is_untouched(restored)
    for damaged in (log, second):
        damaged.unlink()
    hub.manage("backup", str(backups))
    assert "is whole" in hub.manage("backup", "--verify", str(backups)).stdout


@pytest.mark.parametrize("name", ["files.jsonl", "manifest.json"])
def test_a_damaged_list_is_noticed_and_does_no_harm_to_the_next_backup(
    hub: Hub, backups: Path, tmp_path: Path, name: str
) -> None:
    path = backup_of(backups) / name
    path.write_bytes(path.read_bytes()[:-20])
    restored = hubs.other_hub(tmp_path)
    assert f"{name}" in hubs.refusal(restored, "restore", str(backups))
    assert is_untouched(restored)
    hub.manage("backup", str(backups))
    assert "is whole" in hub.manage("backup", "--verify", str(backups)).stdout


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"format": 3}, "A newer TrainHub"),
        ({"version": "99.0"}, "Install that version or a newer one"),
        ({"migrations": ["jobs.9999_later"]}, "does not know 1 of its migrations"),
        ({"database": "postgresql"}, "Set DATABASE_URL"),
    ],
)
def test_a_backup_of_another_kind(backups: Path, tmp_path: Path, values: Any, sentence: str) -> None:
    edit_manifest(backups, **values)
    restored = hubs.other_hub(tmp_path)
    assert sentence in hubs.refusal(restored, "restore", str(backups))
    assert is_untouched(restored)


def test_a_hub_with_data_and_a_running_one(backups: Path, tmp_path: Path) -> None:
    used = hubs.hub_at(tmp_path / "used")
    hubs.write(used.data_dir / hubs.LOG, b"kept")
    assert "holds the files of a hub (runs)" in hubs.refusal(used, "restore", str(backups))
    running = hubs.hub_at(tmp_path / "running")
    hubs.write(running.data_dir / "run" / "up.lock", b"1")
    with (running.data_dir / "run" / "up.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "already runs on" in hubs.refusal(running, "restore", str(backups))


def test_other_keys_stay(backups: Path, tmp_path: Path) -> None:
    restored = hubs.other_hub(tmp_path)
    hubs.write(restored.data_dir / "secret-key", b"another")
    said = hubs.refusal(restored, "restore", str(backups), "--keys", str(tmp_path / "keys"))
    assert "is another key than that of the backup" in said
    assert "does not hold the keys" in hubs.refusal(restored, "restore", str(backups), "--keys", str(backups))
    assert (restored.data_dir / "secret-key").read_bytes() == b"another"


def test_after_an_interruption_it_is_restored_again(backups: Path, tmp_path: Path) -> None:
    restored = hubs.other_hub(tmp_path)
    hubs.write(restored.data_dir / "restore-unfinished", backup_of(backups).name.encode())
    hubs.write(restored.data_dir / hubs.LOG, b"half")
    with pytest.raises(AssertionError, match="was not completed"):
        restored.start()
    restored.manage("restore", str(backups))
    assert (restored.data_dir / hubs.LOG).read_bytes() == b"line\n" * 2000
