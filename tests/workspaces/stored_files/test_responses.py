"""A stored file over HTTP, and what happens when its bytes are no longer those that were stored (finding S3,
remedy 4)."""

from __future__ import annotations

import logging
import os
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from email import message_from_bytes
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.utils import timezone
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.attacks.blobs.served import served
from workspaces.stored_files import blobs, verification, zip_stream
from workspaces.stored_files.blob_writer import BlobWriter
from workspaces.stored_files.responses import PIECE_BYTES, StoredFileResponse

CONTENT = os.urandom(PIECE_BYTES * 2 + 1000)
DAY_AGO = timezone.now() - timedelta(days=1)


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, settings: Any) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def stored(content: bytes) -> str:
    with BlobWriter() as writer:
        writer.write(content)
        return writer.finish()


def damage(sha256: str, at: int) -> None:
    """As a failing disk does: one bit, with the file's time as it was."""
    file = blobs.path(sha256)
    before = file.stat()
    file.chmod(0o600)
    with file.open("r+b") as out:
        out.seek(at)
        byte = out.read(1)
        out.seek(at)
        out.write(bytes([byte[0] ^ 1]))
    file.chmod(before.st_mode)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


async def download(request: Request) -> Response:
    sha256 = request.path_params["sha256"]
    if not blobs.exists(sha256):
        return Response(blobs.absence(sha256), 404)
    return StoredFileResponse(blobs.path(sha256), sha256=sha256, filename="größe.bin", modified_at=DAY_AGO)


async def archive(request: Request) -> Response:
    sha256 = request.path_params["sha256"]
    entries = [
        zip_stream.ZipEntry("a.bin", b"first"),
        zip_stream.ZipEntry("b.bin", blobs.path(sha256), None, sha256),
    ]
    return await zip_stream.response(request, entries, "all.zip")


APP = Starlette(routes=[Route("/{sha256}", download), Route("/{sha256}/zip", archive)])


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with served(APP) as (host, port), httpx.Client(base_url=f"http://{host}:{port}") as opened:
        yield opened


class TestWhole:
    @pytest.mark.parametrize("content", [b"", b"x", CONTENT], ids=["empty", "small", "large"])
    def test_comes_with_its_hash_as_strong_entity_tag(self, client: httpx.Client, content: bytes) -> None:
        sha256 = stored(content)
        verification.forget(sha256)  # as after a restart
        for _ in range(2):  # unverified, and verified by the first
            answer = client.get(f"/{sha256}")
            assert answer.content == content
            assert answer.headers["etag"] == f'"{sha256}"'
            assert answer.headers["cache-control"] == "private, no-cache"
            assert answer.headers["vary"] == "Cookie, Authorization, Accept-Encoding"
            assert answer.headers["content-length"] == str(len(content))
        head = client.head(f"/{sha256}")
        assert (head.status_code, head.headers["content-length"], head.content) == (
            200,
            str(len(content)),
            b"",
        )

    def test_that_the_reader_has_is_not_sent_again(self, client: httpx.Client) -> None:
        sha256 = stored(CONTENT)
        answer = client.get(f"/{sha256}", headers={"If-None-Match": f'"{sha256}"'})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", f'"{sha256}"')
        assert "content-length" not in answer.headers
        modified = client.head(f"/{sha256}").headers["last-modified"]
        assert client.get(f"/{sha256}", headers={"If-Modified-Since": modified}).status_code == 304
        assert client.get(f"/{sha256}", headers={"If-Match": '"another"'}).status_code == 412


class TestRanges:
    def test_one(self, client: httpx.Client) -> None:
        sha256 = stored(CONTENT)
        answer = client.get(f"/{sha256}", headers={"Range": f"bytes={PIECE_BYTES - 5}-{PIECE_BYTES + 4}"})
        assert (answer.status_code, answer.content) == (206, CONTENT[PIECE_BYTES - 5 : PIECE_BYTES + 5])
        assert answer.headers["content-range"] == f"bytes {PIECE_BYTES - 5}-{PIECE_BYTES + 4}/{len(CONTENT)}"

    def test_one_of_a_file_that_nobody_has_read_since_the_start(self, client: httpx.Client) -> None:
        sha256 = stored(CONTENT)
        verification.forget(sha256)
        answer = client.get(f"/{sha256}", headers={"Range": "bytes=-7"})
        assert (answer.status_code, answer.content) == (206, CONTENT[-7:])
        assert verification.is_verified(sha256, blobs.path(sha256).stat())

    def test_several(self, client: httpx.Client) -> None:
        answer = client.get(f"/{stored(CONTENT)}", headers={"Range": "bytes=0-9,100-109,-5"})
        assert answer.status_code == 206
        told = f"Content-Type: {answer.headers['content-type']}\r\n\r\n".encode() + answer.content
        message = message_from_bytes(told)
        parts = [part.get_payload(decode=True) for part in message.get_payload()]  # type: ignore[union-attr]
        assert parts == [CONTENT[:10], CONTENT[100:110], CONTENT[-5:]]
        assert int(answer.headers["content-length"]) == len(answer.content)

    def test_outside_the_file(self, client: httpx.Client) -> None:
        answer = client.get(f"/{stored(b'abc')}", headers={"Range": "bytes=3-"})
        assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */3")

    @pytest.mark.parametrize("told", ["lines=0-1", "bytes=x", "bytes=2-1"])
    def test_that_nobody_understands_give_the_whole(self, client: httpx.Client, told: str) -> None:
        answer = client.get(f"/{stored(b'abc')}", headers={"Range": told})
        assert (answer.status_code, answer.content) == (200, b"abc")


class TestDamaged:
    def test_ends_before_its_last_bytes_and_is_set_aside(
        self, client: httpx.Client, caplog: pytest.LogCaptureFixture, data_dir: Path
    ) -> None:
        sha256 = stored(CONTENT)
        damage(sha256, 10)
        with caplog.at_level(logging.ERROR), pytest.raises(httpx.RemoteProtocolError):
            client.get(f"/{sha256}")
        assert "is damaged" in caplog.text
        assert (data_dir / "blobs" / "damaged" / sha256).exists()
        answer = client.get(f"/{sha256}")
        assert (answer.status_code, "were damaged" in answer.text) == (404, True)

    def test_also_where_it_was_verified_before(self, client: httpx.Client) -> None:
        sha256 = stored(CONTENT)
        assert client.get(f"/{sha256}").content == CONTENT
        damage(sha256, len(CONTENT) - 1)
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(f"/{sha256}")

    @pytest.mark.parametrize("told", [{}, {"Range": "bytes=0-0"}], ids=["whole", "range"])
    def test_a_small_file_and_a_range_are_refused_with_the_reason(
        self, client: httpx.Client, told: dict[str, str]
    ) -> None:
        sha256 = stored(b"small")
        damage(sha256, 4)
        answer = client.get(f"/{sha256}", headers=told)
        assert (answer.status_code, "upload the file again" in answer.json()["detail"]) == (500, True)

    def test_a_zip_ends_early(self, client: httpx.Client) -> None:
        sha256 = stored(CONTENT)
        assert zipfile.ZipFile(BytesIO(client.get(f"/{sha256}/zip").content)).read("b.bin") == CONTENT
        damage(sha256, 10)
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(f"/{sha256}/zip")

    def test_the_right_bytes_sent_again_take_its_place(self, client: httpx.Client) -> None:
        sha256 = stored(CONTENT)
        damage(sha256, 10)
        assert stored(CONTENT) == sha256
        assert client.get(f"/{sha256}").content == CONTENT


class TestZips:
    def test_that_the_reader_has_are_not_sent_again(self, client: httpx.Client) -> None:
        sha256 = stored(CONTENT)
        tag = client.head(f"/{sha256}/zip").headers["etag"]
        assert client.get(f"/{sha256}/zip", headers={"If-None-Match": tag}).status_code == 304
        assert client.get(f"/{sha256}/zip", headers={"If-Match": '"another"'}).status_code == 412
        part = client.get(f"/{sha256}/zip", headers={"Range": "bytes=0-3", "If-Range": tag})
        assert (part.status_code, part.content) == (206, b"PK\3\4")


def test_a_log_that_is_cut_while_it_is_sent_ends_the_answer_early(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"0123456789")

    async def cut(_: Request) -> Response:
        return StoredFileResponse(log, etag='"twenty"', size=20)

    app = Starlette(routes=[Route("/", cut)])
    with served(app) as (host, port), pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"http://{host}:{port}/")


def test_a_file_that_was_deleted_a_moment_ago_is_not_found(tmp_path: Path) -> None:
    async def gone(_: Request) -> Response:
        return StoredFileResponse(tmp_path / "gone", etag='"gone"')

    with served(Starlette(routes=[Route("/", gone)])) as (host, port):
        response = httpx.get(f"http://{host}:{port}/")
    assert (response.status_code, "deleted a moment ago" in response.json()["detail"]) == (404, True)


def test_what_a_process_remembers_of_verified_files_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "MAX_REMEMBERED", 2)
    for number in range(5):
        stored(str(number).encode())
    assert len(verification._verified) <= 2


def test_a_file_is_sent_as_it_was_when_it_grows_meanwhile(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"0123456789")

    async def grown(_: Request) -> Response:
        answer = StoredFileResponse(log, etag='"ten"', size=10)
        log.write_bytes(b"0123456789 and more")
        return answer

    with served(Starlette(routes=[Route("/", grown)])) as (host, port):
        assert httpx.get(f"http://{host}:{port}/").content == b"0123456789"
