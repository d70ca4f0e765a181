"""What a backup holds, what it adds the next time, and what it refuses."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.backup import hubs
from tests.backup.drill import backup_of, manifest
from tests.hub import Hub, eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return hubs.stopped_hub(tmp_path)


@contextmanager
def locked(path: Path, kind: int) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, kind)
        yield


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and size of each file below a folder."""
    facts = {str(path.relative_to(folder)): path.stat() for path in folder.rglob("*") if path.is_file()}
    return {name: (status.st_ino, status.st_size) for name, status in facts.items()}


def test_the_next_backup_only_adds_what_is_new(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    log = hub.data_dir / hubs.LOG
    os.utime(log, (1_700_000_000, 1_700_000_000))
    hub.manage("backup", str(folder), "--copy")
    first, blobs = backup_of(folder), files_of(folder / "blobs")
    assert {size for _, size in blobs.values()} == {6000}
    # Copied: none is a second name of the hub's own file.
    assert not {inode for inode, _ in blobs.values()} & {
        inode for inode, _ in files_of(hub.data_dir).values()
    }
    hubs.add_blob(hub, b"new")
    hub.manage("backup", str(folder), "--copy")
    second = backup_of(folder)
    assert second != first
    after = files_of(folder / "blobs")
    assert len(after) == 4
    assert blobs.items() <= after.items()
    assert (second / "files" / hubs.LOG).stat().st_ino == (first / "files" / hubs.LOG).stat().st_ino
    log.write_bytes(b"longer\n" * 3000)
    hub.manage("backup", str(folder), "--keep", "1")
    assert [path.name for path in folder.glob("*Z")] == [backup_of(folder).name]
    assert (backup_of(folder) / "files" / hubs.LOG).read_bytes() == log.read_bytes()
    assert len(files_of(folder / "blobs")) == 4
    assert "is whole: 9 files" in hub.manage("backup", "--verify", str(folder)).stdout


def test_old_backups_go_with_their_blobs(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    hub.manage("backup", str(folder))
    next((hub.data_dir / "blobs").glob("*/*")).unlink()
    eventually(lambda: hub.manage("backup", str(folder), "--keep", "1").returncode == 0)
    assert len(files_of(folder / "blobs")) == 2
    hub.manage("backup", "--verify", str(folder))


def test_keys_lie_in_their_own_folder_only(hub: Hub, tmp_path: Path) -> None:
    folder, keys = tmp_path / "backups", tmp_path / "keys"
    for wrong in (folder / "keys", tmp_path, hub.data_dir / "keys"):
        assert "lie in each other" in hubs.refusal(hub, "backup", str(folder), "--with-keys", str(wrong))
    said = hub.manage("backup", str(folder), "--with-keys", str(keys)).stdout
    assert "Move them to where the backups are not" in said
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for key in (*hubs.KEYS.values(), "00000000 the key"):
        assert key.encode() not in stored
        assert any(key.encode() in path.read_bytes() for path in keys.rglob("*") if path.is_file())
    assert b"a public key" in stored
    assert {path.stat().st_mode & 0o077 for path in (*folder.rglob("*"), *keys.rglob("*"))} == {0}


def test_without_blobs_they_are_listed(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    hub.manage("backup", str(folder), "--no-blobs")
    assert not (folder / "blobs").exists()
    lines = [json.loads(line) for line in (backup_of(folder) / "files.jsonl").read_text().splitlines()]
    listed = {path for path, *_ in lines if path.startswith("blobs/")}
    assert listed == {f"blobs/{name}" for name in files_of(hub.data_dir / "blobs")}
    assert "only listed" in hub.manage("backup", "--verify", str(folder)).stdout
    restored = hubs.other_hub(tmp_path)
    assert "3 stored files are only listed" in restored.manage("restore", str(folder)).stdout


def test_places_that_are_wrong(hub: Hub, tmp_path: Path) -> None:
    for wrong in (hub.data_dir / "backups", hub.data_dir, hub.data_dir.parent):
        assert "lie in each other" in hubs.refusal(hub, "backup", str(wrong))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    assert "has other files in it" in hubs.refusal(hub, "backup", str(tmp_path / "other"))
    assert "file: File exists" in hubs.refusal(hub, "backup", str(tmp_path / "other" / "file" / "backups"))
    assert "holds no backup" in hubs.refusal(hub, "backup", "--verify", str(tmp_path / "other"))
    new = hubs.other_hub(tmp_path)
    assert "there is no hub to back up" in hubs.refusal(new, "backup", str(tmp_path / "backups"))


def test_two_at_once(hub: Hub, tmp_path: Path) -> None:
    with locked(tmp_path / "backups" / "backup.lock", fcntl.LOCK_EX):
        assert "Another backup is being written" in hubs.refusal(hub, "backup", str(tmp_path / "backups"))
    with locked(hub.data_dir / "backup.lock", fcntl.LOCK_EX):
        said = hubs.refusal(hub, "backup", str(tmp_path / "backups"))
    assert "another backup of this hub is running" in said
    assert [path.name for path in (tmp_path / "backups").iterdir()] == ["backup.lock"]


@pytest.mark.parametrize(("limit", "sentence"), [(100_000, "could not be copied"), (8_000_000, "is full")])
def test_a_full_disk_leaves_nothing_that_looks_whole(
    hub: Hub, tmp_path: Path, limit: int, sentence: str
) -> None:
    """With a limit on the size of files, which is smaller than the database or than a log."""
    hubs.write(hub.data_dir / hubs.LOG, bytes(9_000_000))
    hub.prefix = ("prlimit", f"--fsize={limit}")
    assert sentence in hubs.refusal(hub, "backup", str(tmp_path / "backups"))
    assert [path.name for path in (tmp_path / "backups").iterdir()] == ["backup.lock"]


def test_a_killed_backup_counts_as_incomplete(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    command = [hub.python, "manage.py", "backup", str(folder)]
    with locked(hub.data_dir / "deletions.lock", fcntl.LOCK_SH):  # a purge, for which it waits
        process = subprocess.Popen(command, cwd=hub.project, env=hub.env)
        eventually(lambda: list(folder.glob("*.unfinished")), 60, "it has begun")
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    assert "is incomplete" in hubs.refusal(hub, "backup", "--verify", str(folder))
    assert "is incomplete" in hubs.refusal(hubs.other_hub(tmp_path), "restore", str(folder))
    hub.manage("backup", str(folder))
    assert not list(folder.glob("*.unfinished"))
    hub.manage("backup", "--verify", str(folder))


def test_what_the_hub_has_lost_is_named(hub: Hub, tmp_path: Path) -> None:
    damaged = next((hub.data_dir / "blobs").glob("*/*"))
    damaged.chmod(0o600)
    damaged.write_bytes(b"x" * 6000)
    said = hub.manage("backup", str(tmp_path / "backups"), "--copy")
    assert "missing or damaged before this backup" in said.stderr
    assert manifest(backup_of(tmp_path / "backups"))["missing"] == [damaged.name]
    hub.manage("backup", "--verify", str(tmp_path / "backups"))
