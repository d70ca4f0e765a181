from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from workspaces.stored_files import blob_writer, blobs
from workspaces.stored_files.blob_writer import BlobWriter

CONTENT = b"weights" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, settings: pytest.FixtureRequest) -> Path:
    settings.DATA_DIR = tmp_path  # type: ignore[attr-defined]
    return tmp_path


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


class TestWriter:
    def test_a_blob_is_named_by_its_content_and_private(self, data_dir: Path) -> None:
        with BlobWriter() as writer:
            writer.write(CONTENT[:10])
            writer.write(CONTENT[10:])
            assert writer.finish(SHA256) == SHA256
        assert blobs.path(SHA256) == data_dir / "blobs" / SHA256[:2] / SHA256
        assert blobs.path(SHA256).read_bytes() == CONTENT
        assert blobs.path(SHA256).stat().st_mode & 0o777 == 0o400
        assert blobs.path(SHA256).parent.stat().st_mode & 0o777 == 0o700

    def test_wrong_bytes_leave_nothing(self, data_dir: Path) -> None:
        with BlobWriter() as writer:
            writer.write(b"something else")
            with pytest.raises(blobs.BlobError, match=SHA256):
                writer.finish(SHA256)
        assert files(data_dir) == []

    def test_an_interrupted_one_leaves_nothing(self, data_dir: Path) -> None:
        with BlobWriter() as writer:
            writer.write(CONTENT)
        assert files(data_dir) == []

    def test_storing_the_same_twice_keeps_one(self, data_dir: Path) -> None:
        for name in ("first", "second"):
            (data_dir / name).write_bytes(CONTENT)
            assert blob_writer.store_file(data_dir / name) == SHA256
        assert files(data_dir) == [blobs.path(SHA256)]


class TestFileSystemWithoutHardLinks:
    """Such as exFAT, and some network file systems."""

    @pytest.fixture(autouse=True)
    def no_links(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", refuse)

    def test_a_blob_gets_its_name_and_is_not_replaced(self, data_dir: Path) -> None:
        inodes = set()
        for name in ("first", "second"):
            (data_dir / name).write_bytes(CONTENT)
            assert blob_writer.store_file(data_dir / name) == SHA256
            inodes.add(blobs.path(SHA256).stat().st_ino)
        assert files(data_dir) == [blobs.path(SHA256)]
        assert len(inodes) == 1


class TestDrop:
    def test_a_file_that_is_gone_already_frees_nothing(self) -> None:
        assert blobs.drop(blobs.path(SHA256), unkept_since=2.0**40) is None


class TestPath:
    @pytest.mark.parametrize(
        "name", ["", "../../secret-key", SHA256.upper(), SHA256 + "0", SHA256[:-1] + "\n"]
    )
    def test_nothing_but_a_hash_is_a_name(self, name: str) -> None:
        with pytest.raises(blobs.BlobError):
            blobs.path(name)

    def test_exists_only_when_whole(self) -> None:
        assert not blobs.exists(SHA256)
        with BlobWriter() as writer:
            writer.write(CONTENT)
            assert not blobs.exists(SHA256)
            writer.finish()
            assert blobs.exists(SHA256)
        blobs.path(SHA256).unlink()
        assert not blobs.exists(SHA256)
