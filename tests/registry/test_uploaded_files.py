"""Versions of files that were sent to the hub in pieces before."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from httpx import ASGITransport, AsyncClient, Response

from jobs.models import UploadedBlob
from jobs.transfer import uploads
from registry.models import ModelVersion
from tests.jobs.raw import bearing
from tests.people import make_contributor, make_owner, make_person, make_viewer, make_workspace, token_of
from tests.registry.builders import blob
from trainhub.asgi import application
from workspaces.models import User, Workspace
from workspaces.states import Role
from workspaces.stored_files import blobs, resumable

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/api/v1/models/digits/versions/"
PIECE = 100_000


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(transport=ASGITransport(application), base_url="http://testserver") as opened:
        await sign_in(opened, await sync_to_async(make_contributor)())
        yield opened


async def sign_in(client: AsyncClient, who: User, workspace: Workspace | None = None) -> None:
    client.headers.update(bearing(await sync_to_async(token_of)(who, workspace)))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def send(client: AsyncClient, data: bytes, *, begin: int = 0, end: int | None = None) -> Response:
    """Sends the file from `begin`, up to `end` or whole."""
    answer = Response(599)
    for start in range(begin, len(data) if end is None else end, PIECE):
        piece = data[start : start + PIECE]
        span = f"bytes {start}-{start + len(piece) - 1}/{len(data)}"
        answer = await client.put(
            f"/api/v1/uploads/{digest(data)}", headers={"Content-Range": span}, content=piece
        )
        assert answer.status_code == 200, answer.text
    return answer


async def stored(client: AsyncClient, data: bytes) -> tuple[int, bool]:
    answer = await client.head(f"/api/v1/uploads/{digest(data)}")
    return int(answer.headers["upload-offset"]), answer.headers["upload-complete"] == "true"


async def register(client: AsyncClient, files: dict[str, str], **others: Any) -> Response:
    """`files`: the SHA-256 of each by its path."""
    rows = [{"path": path, "sha256": sha256} for path, sha256 in files.items()]
    return await client.post(ADDRESS, json={"files": rows, **others})


def problem(answer: Response) -> tuple[int, list[str], str]:
    body = answer.json()
    return answer.status_code, [error["field"] for error in body.get("errors", [])], body["detail"]


async def test_files_become_a_version_and_are_there_for_the_next_one(client: AsyncClient) -> None:
    weights, labels = os.urandom(250_000), b"owl\n"
    await send(client, weights, end=200_000)
    assert await stored(client, weights) == (200_000, False)
    assert (await send(client, weights, begin=200_000)).headers["upload-complete"] == "true"
    await send(client, labels)
    files = {"net/weights.bin": digest(weights), "labels.txt": digest(labels)}
    answer = await register(client, files, description="Ten birds.", tags={"species": "10"})
    told = answer.json()
    assert (answer.status_code, told["kind"], told["created_by"]) == (201, "upload", "carl")
    assert (told["description"], told["tags"]) == ("Ten birds.", {"species": "10"})
    assert {file["path"]: (file["size_bytes"], file["sha256"]) for file in told["files"]} == {
        "labels.txt": (4, digest(labels)),
        "net/weights.bin": (250_000, digest(weights)),
    }
    assert blobs.path(digest(weights)).read_bytes() == weights
    # Others of the workspace need not send it again either: they can read it.
    await sign_in(client, await sync_to_async(make_owner)())
    assert await stored(client, weights) == (250_000, True)
    assert (await register(client, files)).json()["version"] == 2


async def test_a_hash_alone_gives_nobody_a_file(client: AsyncClient) -> None:
    elsewhere = os.urandom(1000)
    await sync_to_async(blob)(elsewhere)
    assert await stored(client, elsewhere) == (0, False)
    status, fields, detail = problem(await register(client, {"a.bin": digest(elsewhere)}))
    assert (status, fields) == (400, ["files"])
    assert f"send it to /api/v1/uploads/{digest(elsewhere)}" in detail
    # Nor does what a colleague has sent, and not yet registered.
    await sign_in(client, await sync_to_async(make_owner)())
    await send(client, elsewhere)
    await sign_in(client, await sync_to_async(make_person)("other", Role.CONTRIBUTOR))
    assert await stored(client, elsewhere) == (0, False)
    assert problem(await register(client, {"a.bin": digest(elsewhere)}))[0] == 400
    assert await sync_to_async(ModelVersion.objects.count)() == 0


async def test_what_was_sent_to_one_workspace_is_unknown_in_another(client: AsyncClient) -> None:
    data = os.urandom(1000)
    await send(client, data)
    other = await sync_to_async(make_workspace)("elsewhere")
    # The same person, who may do the same there.
    carl = await sync_to_async(make_person)("carl", Role.CONTRIBUTOR, other)
    await sign_in(client, carl, other)
    assert await stored(client, data) == (0, False)
    assert problem(await register(client, {"a.bin": digest(data)}))[0] == 400


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "is empty; name at least one file"),
        ({"../a": "0" * 64}, "Invalid path"),
        ({"a": "0" * 64, "a/b": "0" * 64}, "a file and a folder of one name"),
        ({"a": "0" * 63}, "required pattern"),
        ({"a": "../" + "0" * 64}, "required pattern"),
    ],
)
async def test_what_cannot_be_a_version_is_refused(
    client: AsyncClient, files: dict[str, str], words: str
) -> None:
    status, fields, detail = problem(await register(client, files))
    assert (status, fields[0].partition("[")[0]) == (400, "files")
    assert words in detail
    assert await sync_to_async(ModelVersion.objects.count)() == 0


async def test_run_and_source_do_not_stand_beside_files(client: AsyncClient) -> None:
    await send(client, b"weights")
    for other in ({"run": "0" * 32}, {"source": "models:/digits/1"}):
        status, fields, detail = problem(await register(client, {"a": digest(b"weights")}, **other))
        assert (status, fields) == (400, ["files"])
        assert "cannot stand beside run or source" in detail


async def test_a_viewer_registers_nothing(client: AsyncClient) -> None:
    await sign_in(client, await sync_to_async(make_viewer)())
    assert (await register(client, {"a": "0" * 64})).status_code == 403


async def test_what_was_deleted_meanwhile_has_to_be_sent_again(client: AsyncClient) -> None:
    data = os.urandom(1000)
    await send(client, data)
    blobs.path(digest(data)).unlink()
    assert await stored(client, data) == (0, False)
    status, _, detail = problem(await register(client, {"a.bin": digest(data)}))
    assert (status, "send it to" in detail) == (400, True)


async def test_who_has_sent_what_is_forgotten_after_some_days(client: AsyncClient) -> None:
    await send(client, b"weights")
    await sync_to_async(uploads.sweep)()
    assert await sync_to_async(UploadedBlob.objects.count)() == 1
    await sync_to_async(uploads.sweep)(time.time() + resumable.KEEP_UNFINISHED_S + 1)
    assert await sync_to_async(UploadedBlob.objects.count)() == 0
