"""Finding S3: a resumed upload could change a stored file after its SHA-256 had been checked."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import threading
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from django.conf import settings
from starlette.applications import Starlette

from jobs.byte_routes import routes
from registry.transfer.forms import FilesForm
from tests.attacks.blobs.served import HeldRequest, served
from tests.jobs.raw import bearing, other_token
from tests.people import make_contributor, token_of
from workspaces.stored_files import blobs, resumable
from workspaces.stored_files.blob_writer import BlobWriter

pytestmark = pytest.mark.django_db(transaction=True)
PIECE = 8 * 2**20
SIZE = 6 * PIECE
EVIL = b"EVILEVI!"


def span(start: int, end: int, total: int) -> dict[str, str]:
    return {"Content-Range": f"bytes {start}-{end - 1}/{total}"}


def test_a_held_back_request_cannot_change_a_file_while_or_after_it_is_checked() -> None:
    """Finding S3, as it was shown: a request that passed the comparison of offsets before waits with its last
    byte until the last piece of the file is being checked."""
    headers = bearing(token_of(make_contributor()))
    with served(Starlette(routes=routes)) as address, httpx.Client(timeout=60) as client:
        for number in range(12):
            data = os.urandom(SIZE)
            sha256 = hashlib.sha256(data).hexdigest()
            path = f"/api/v1/uploads/{sha256}"
            held = HeldRequest(address, path, {**headers, **span(0, len(EVIL), SIZE)}, EVIL)
            url = f"http://{address[0]}:{address[1]}{path}"
            release = threading.Timer(0.01 * number, held.release)
            for start in range(0, SIZE, PIECE):
                if start + PIECE == SIZE:
                    release.start()
                sent = {**headers, **span(start, start + PIECE, SIZE)}
                answer = client.put(url, headers=sent, content=data[start : start + PIECE])
                while answer.status_code == 503:
                    # The held request was just being compared with the file.
                    assert answer.json()["title"] == "Busy"
                    answer = client.put(url, headers=sent, content=data[start : start + PIECE])
                assert answer.status_code == 200, answer.text
            release.join()
            held.status()
            assert hashlib.sha256(blobs.path(sha256).read_bytes()).hexdigest() == sha256, (
                f"try {number}: the file was exchanged"
            )


def test_who_sends_a_stored_file_again_does_not_touch_it() -> None:
    """Finding S3: the file of one workspace was replaced by another's upload of the same bytes."""
    data = os.urandom(100_000)
    with BlobWriter() as writer:
        writer.write(data)
        sha256 = writer.finish()
    before = blobs.path(sha256).stat()
    with served(Starlette(routes=routes)) as address, httpx.Client(timeout=60) as client:
        url = f"http://{address[0]}:{address[1]}/api/v1/uploads/{sha256}"
        answer = client.put(
            url, headers={**bearing(other_token()), **span(0, len(data), len(data))}, content=data
        )
    assert (answer.status_code, answer.headers["upload-complete"]) == (200, "true")
    after = blobs.path(sha256).stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)


def test_a_stored_file_is_sealed() -> None:
    """Finding S3: nothing may be able to open a stored file for writing any more."""
    with BlobWriter() as writer:
        writer.write(b"sealed")
        sha256 = writer.finish()
    assert blobs.path(sha256).stat().st_mode & 0o777 == 0o400


def _race(folder: Path, sha256: str, data: bytes, seed: int) -> None:
    """A process that tries to get pieces into the part, right ones and wrong ones, until the file is
    stored."""
    settings.DATA_DIR = folder
    chance = random.Random(seed)  # noqa: S311 - a game, not a secret
    part = resumable.Part(folder / "uploads" / f"{sha256}.user-1", sha256, len(data))
    for _ in range(400):
        if blobs.exists(sha256):
            return
        start = resumable.stored_bytes(part.path)
        end = min(start + 4096, len(data))
        piece = data[start:end] if chance.random() < 0.9 else b"x" * (end - start)
        with suppress(resumable.WrongOffset, resumable.Busy, blobs.BlobError):
            resumable.append(part, start, piece)


def test_several_processes_that_write_one_file_store_only_the_right_bytes(tmp_path: Path) -> None:
    """Finding S3: the lock of a part holds between several web processes, not only between threads of one."""
    context = multiprocessing.get_context("fork")
    for number in range(5):
        folder = tmp_path / str(number)
        data = os.urandom(32 * 4096)
        sha256 = hashlib.sha256(data).hexdigest()
        racers = [
            context.Process(target=_race, args=(folder, sha256, data, number * 10 + racer))
            for racer in range(6)
        ]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join(60)
        assert [racer.exitcode for racer in racers] == [0] * 6
        stored = [file for file in (folder / "blobs").rglob("*") if file.is_file()]
        assert all(hashlib.sha256(file.read_bytes()).hexdigest() == file.name for file in stored)


def test_a_form_that_breaks_off_does_not_take_a_file_that_somebody_else_has_sent_meanwhile() -> None:
    """The same seam: what a refused upload had stored was deleted again, also where another upload of the
    same bytes was complete by then and about to be named."""
    data = os.urandom(1000)
    form = FilesForm("multipart/form-data; boundary=x")
    form.write(
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.bin"\r\n\r\n'
        + data
        + b"\r\n--x\r\n"
    )
    with BlobWriter() as writer:
        writer.write(data)
        sha256 = writer.finish()
    form.drop()
    assert blobs.exists(sha256)
