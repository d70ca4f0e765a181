"""A zip made while it is sent is a zip like any other, and any part of it is the same part."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from workspaces.stored_files import zip_stream
from workspaces.stored_files.zip_stream import Archive, ZipEntry

AT = datetime(2026, 3, 1, 12, 30, 20, tzinfo=UTC)


def files(folder: Path) -> list[ZipEntry]:
    contents = {"model/weights.bin": os.urandom(2_500_000), "empty": b"", "größe 模型.txt": "grün".encode()}
    for number, content in enumerate(contents.values()):
        (folder / str(number)).write_bytes(content)
    return [
        *(ZipEntry(name, folder / str(number), AT) for number, name in enumerate(contents)),
        ZipEntry("told.json", b"{}"),
    ]


def whole(archive: Archive) -> bytes:
    return b"".join(archive.pieces())


class TestArchive:
    def test_is_read_by_pythons_zipfile_with_every_crc_right(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(io.BytesIO(whole(Archive(files(tmp_path))))) as read:
            assert read.testzip() is None
            assert read.namelist() == ["model/weights.bin", "empty", "größe 模型.txt", "told.json"]
            assert read.read("größe 模型.txt").decode() == "grün"
            assert read.getinfo("empty").date_time == (2026, 3, 1, 12, 30, 20)

    @pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
    def test_is_read_by_unzip(self, tmp_path: Path) -> None:
        (tmp_path / "a.zip").write_bytes(whole(Archive(files(tmp_path))))
        done = subprocess.run(
            ["unzip", "-tq", tmp_path / "a.zip"], capture_output=True, text=True, check=False
        )
        assert "No errors detected" in done.stdout, done.stdout + done.stderr

    def test_knows_its_size_before_a_file_is_read(self, tmp_path: Path) -> None:
        archive = Archive(files(tmp_path))
        assert archive.size == len(whole(archive))

    def test_any_part_is_the_same_part_of_the_whole(self, tmp_path: Path) -> None:
        archive = Archive(files(tmp_path))
        data = whole(archive)
        random.seed(1)
        cuts = [
            (0, 1),
            (10, 40),
            (len(data) - 1, len(data)),
            *(sorted(random.sample(range(len(data)), 2)) for _ in range(40)),
        ]
        for start, end in cuts:
            assert b"".join(archive.pieces(start, end)) == data[start:end]

    def test_of_nothing_is_an_empty_zip(self) -> None:
        with zipfile.ZipFile(io.BytesIO(whole(Archive([])))) as read:
            assert read.namelist() == []

    def test_refuses_a_name_twice_and_a_file_that_is_gone(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="Two files"):
            Archive([ZipEntry("a", b"1"), ZipEntry("a", b"2")])
        with pytest.raises(FileNotFoundError):
            Archive([ZipEntry("a", tmp_path / "gone")])

    def test_ends_with_an_error_if_a_file_becomes_shorter_meanwhile(self, tmp_path: Path) -> None:
        (tmp_path / "log.txt").write_bytes(b"0123456789")
        archive = Archive([ZipEntry("log.txt", tmp_path / "log.txt")])
        (tmp_path / "log.txt").write_bytes(b"01234")
        with pytest.raises(OSError, match="has become shorter"):
            whole(archive)


class TestZip64:
    def test_files_beyond_4_gib_are_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        large = tmp_path / "large"
        large.touch()
        os.truncate(large, 5 * 2**30)
        monkeypatch.setitem(
            zip_stream._crcs, (large, 5 * 2**30), 0
        )  # 5 GiB of zeros need not be read for this
        archive = Archive(
            [ZipEntry("large", large), ZipEntry("after", b"here"), ZipEntry("last", b"and here")]
        )
        end = b"".join(archive.pieces(5 * 2**30))
        with zipfile.ZipFile(_Sparse(end, archive.size)) as read:
            assert read.getinfo("large").file_size == 5 * 2**30
            assert (read.read("after"), read.read("last")) == (b"here", b"and here")

    def test_more_than_65535_files_are_all_found(self) -> None:
        with zipfile.ZipFile(
            io.BytesIO(whole(Archive(ZipEntry(f"{n}.txt", b"") for n in range(70_000))))
        ) as read:
            assert len(read.namelist()) == 70_000


class TestResponse:
    def test_gives_the_whole_or_one_range_or_says_that_it_lies_outside(self, tmp_path: Path) -> None:
        client, data = self._serving(tmp_path)
        got = client.get("/")
        assert (got.status_code, got.content, got.headers["content-length"]) == (200, data, str(len(data)))
        part = client.get("/", headers={"range": "bytes=100-199"})
        assert (part.status_code, part.content) == (206, data[100:200])
        assert part.headers["content-range"] == f"bytes 100-199/{len(data)}"
        assert client.get("/", headers={"range": f"bytes={len(data) - 5}-"}).content == data[-5:]
        assert client.get("/", headers={"range": "bytes=-7"}).content == data[-7:]
        assert client.get("/", headers={"range": f"bytes={len(data)}-"}).status_code == 416

    def test_a_download_is_not_continued_with_another_state(self, tmp_path: Path) -> None:
        client, data = self._serving(tmp_path)
        etag = client.head("/").headers["etag"]
        assert client.get("/", headers={"range": "bytes=5-9", "if-range": etag}).content == data[5:10]
        assert client.get("/", headers={"range": "bytes=5-9", "if-range": '"other"'}).content == data

    def _serving(self, folder: Path) -> tuple[TestClient, bytes]:
        entries = files(folder)

        async def serve(request: Request) -> Response:
            return await zip_stream.response(request, entries, "größe.zip")

        return TestClient(Starlette(routes=[Route("/", serve, methods=["GET", "HEAD"])])), whole(
            Archive(entries)
        )


class _Sparse(io.RawIOBase):
    """A file of `size` bytes of which only the `end` is there."""

    def __init__(self, end: bytes, size: int) -> None:
        self._end, self._size, self._at = end, size, 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + {0: 0, 1: self._at, 2: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        at = self._at - (self._size - len(self._end))
        assert at >= 0, "what is not there was read"
        piece = self._end[at : len(self._end) if size < 0 else at + size]
        self._at += len(piece)
        return piece
