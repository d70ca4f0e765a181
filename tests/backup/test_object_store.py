"""Backups of a hub whose files are in an object store: by reference, and by content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backup.hubs import other_hub, refusal, stopped_hub
from tests.hub import Hub
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.close()


def access(server: S3Server, place: str = f"s3://{BUCKET}/hub") -> dict[str, str]:
    return {
        "BLOB_STORE": place,
        "BLOB_STORE_ENDPOINT": server.url,
        "BLOB_STORE_KEY_ID": KEY_ID,
        "BLOB_STORE_SECRET": SECRET,
    }


@pytest.fixture
def hub(tmp_path: Path, server: S3Server) -> Hub:
    """Two of three files are in the store, one of these is only there; the third waits."""
    hub = stopped_hub(tmp_path)
    hub.settings.update(access(server))
    waiting, only_there, _ = sorted((hub.data_dir / "blobs").glob("??/*"))
    aside = waiting.rename(tmp_path / "aside")
    hub.manage("blobs", "to-store")
    assert len(server.objects[BUCKET]) == 2
    only_there.unlink()
    aside.rename(waiting)
    return hub


def blobs_of(folder: Path) -> set[str]:
    return {path.name for path in (folder / "blobs").glob("??/*")}


def manifest_of(backups: Path) -> dict[str, object]:
    (path,) = backups.glob("*/manifest.json")
    return dict(json.loads(path.read_text()))


def test_by_reference(hub: Hub, server: S3Server, tmp_path: Path) -> None:
    said = hub.manage("backup", str(tmp_path / "backups")).stdout
    assert "2 files (0.0 MiB) are in it by reference only: they are in s3://birds/hub." in said
    manifest = manifest_of(tmp_path / "backups")
    assert (manifest["object_store"], manifest["objects"], manifest["has_objects"]) == (
        "s3://birds/hub",
        2,
        False,
    )
    assert len(blobs_of(tmp_path / "backups")) == 1
    assert "is whole" in hub.manage("backup", "--verify", str(tmp_path / "backups")).stdout
    # Without the store, or with another one, nothing is written.
    other = other_hub(tmp_path)
    assert "Set BLOB_STORE=s3://birds/hub" in refusal(other, "restore", str(tmp_path / "backups"))
    other.settings.update(access(server))
    said = other.manage("restore", str(tmp_path / "backups")).stdout
    assert "2 files are in s3://birds/hub, 0 of them missing there." in said
    verified = other.manage("blobs", "verify", "--read").stdout
    assert "2 of 2 objects are there, each with its content." in verified
    other.manage("blobs", "to-disk")
    assert len(blobs_of(other.data_dir)) == 3


def test_objects_that_are_gone_are_counted(hub: Hub, server: S3Server, tmp_path: Path) -> None:
    hub.manage("backup", str(tmp_path / "backups"))
    server.objects[BUCKET].popitem()
    other = other_hub(tmp_path, **access(server))
    said = other.manage("restore", str(tmp_path / "backups")).stdout
    assert "2 files are in s3://birds/hub, 1 of them missing there." in said


def test_by_content_into_another_store(hub: Hub, server: S3Server, tmp_path: Path) -> None:
    hub.manage("backup", "--with-objects", str(tmp_path / "backups"))
    assert len(blobs_of(tmp_path / "backups")) == 3
    server.objects[BUCKET].clear()
    other = other_hub(tmp_path, **access(server, f"s3://{BUCKET}/second"))
    other.manage("restore", str(tmp_path / "backups"))
    other.manage("blobs", "to-store")
    assert len(server.objects[BUCKET]) == 3
    assert all(key.startswith("second/") for key in server.objects[BUCKET])
    assert "3 of 3 objects" in other.manage("blobs", "verify", "--read").stdout


def test_by_content_onto_a_disk(hub: Hub, server: S3Server, tmp_path: Path) -> None:
    hub.manage("backup", "--with-objects", str(tmp_path / "backups"))
    server.close()
    other = other_hub(tmp_path)
    other.manage("restore", str(tmp_path / "backups"))
    assert len(blobs_of(other.data_dir)) == 3
    assert "in the store" not in other.manage("blobs", "status").stdout


def test_a_store_that_does_not_give_the_bytes(hub: Hub, server: S3Server, tmp_path: Path) -> None:
    server.objects[BUCKET].clear()
    done = hub.manage("backup", "--with-objects", str(tmp_path / "backups"), check=False)
    assert done.returncode == 1
    assert "CommandError: No backup was made: The object s3://birds/hub/" in done.stderr
    assert not list((tmp_path / "backups").glob("*/manifest.json"))
