"""A full disk: every way in refuses a file with a clear answer, leaves nothing half-stored, and works again
with space."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async

from jobs.sources import snapshots
from jobs.sources.source_files import SnapshotError
from tests.jobs.builders import zipped
from tests.people import make_contributor, principal_of, token_of
from tests.tracking.builders import logged_run
from trainhub.asgi import application
from workspaces import process_caches
from workspaces.stored_files import blobs

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk"),
]
MIB = 2**20
DATA = os.urandom(12 * MIB)
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def disk(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """A DATA_DIR of 32 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("a small disk cannot be mounted here")
    settings.DATA_DIR = folder
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def only(disk: Path, free: int) -> Iterator[None]:
    """All but `free` bytes of the disk are taken meanwhile."""
    facts = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(b"x" * (facts.f_bavail * facts.f_frsize - free))
    try:
        yield
    finally:
        filler.unlink()


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    process_caches.clear_all()
    token = await sync_to_async(lambda: token_of(make_contributor()))()
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://testserver", headers={"Authorization": f"Bearer {token}"}
    ) as opened:
        yield opened


def stored(disk: Path) -> list[str]:
    """Everything below the blobs, half-written files included."""
    return [file.name for file in (disk / "blobs").rglob("*") if file.is_file()]


async def by_and_by(data: bytes) -> AsyncIterator[bytes]:
    """Without a length that is told before."""
    for start in range(0, len(data), MIB):
        yield data[start : start + MIB]


@pytest.mark.parametrize("free", [0, 5 * MIB, 5 * MIB + 1000])
async def test_a_file_in_pieces_keeps_what_has_come_and_goes_on_when_there_is_space(
    free: int, disk: Path, client: httpx.AsyncClient
) -> None:
    url = f"/api/v1/uploads/{SHA256}"

    async def put(start: int, end: int) -> httpx.Response:
        return await client.put(
            url, headers={"Content-Range": f"bytes {start}-{end - 1}/{len(DATA)}"}, content=DATA[start:end]
        )

    assert (await put(0, 6 * MIB)).status_code == 200
    with only(disk, free):
        refused = await put(6 * MIB, 12 * MIB)
        assert (refused.status_code, refused.json()["title"]) == (507, "Disk full")
        assert "freed space below DATA_DIR" in refused.json()["detail"]
        assert (await client.head(url)).headers["upload-offset"] == str(6 * MIB)
    assert stored(disk) == []
    assert (await put(6 * MIB, 12 * MIB)).headers["upload-complete"] == "true"
    assert blobs.path(SHA256).read_bytes() == DATA


@pytest.mark.parametrize("announced", [True, False])
async def test_an_artifact(announced: bool, disk: Path, client: httpx.AsyncClient) -> None:
    run = await sync_to_async(logged_run)()
    url = f"/api/2.0/mlflow-artifacts/artifacts/{run.experiment_id}/{run.pk}/artifacts/a.bin"
    with only(disk, 5 * MIB + 100):
        refused = await client.put(url, content=DATA if announced else by_and_by(DATA))
        assert (refused.status_code, "disk is full" in refused.json()["message"]) == (507, True)
        assert stored(disk) == []
    assert (await client.put(url, content=DATA)).status_code == 200
    assert (await client.get(url)).content == DATA


async def test_a_model(disk: Path, client: httpx.AsyncClient) -> None:
    url, form = (
        "/api/v1/models/digits/versions/upload",
        [("files", ("a.bin", DATA)), ("files", ("b.bin", b"small"))],
    )
    with only(disk, 5 * MIB + 100):
        refused = await client.post(url, files=form)
        assert (refused.status_code, "disk is full" in refused.json()["detail"]) == (507, True)
        assert stored(disk) == []
    assert (await client.post(url, files=form)).status_code == 201


def test_a_source(disk: Path) -> None:
    who = principal_of(make_contributor())
    source = {"train.py": os.urandom(MIB)}
    with only(disk, MIB // 2):
        with pytest.raises(SnapshotError, match="disk is full"):
            snapshots.from_zip(zipped(source), who)
        assert stored(disk) == []
    assert blobs.exists(snapshots.from_zip(zipped(source), who).sha256)
