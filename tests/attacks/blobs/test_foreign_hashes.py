"""Finding S5: who knows a hash had the file. A node read files of other workspaces by naming their hashes as
its outputs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator

import httpx
import pytest
from asgiref.sync import sync_to_async

from clusters.models import Node
from jobs import outputs
from jobs.models import Artifact, AttemptNode, Run
from tests.jobs.builders import ended
from tests.jobs.raw import (
    Headers,
    Upload,
    bearing,
    claimed,
    contributor,
    enrolled,
    opened,
    other_principal,
    other_token,
    packed,
)
from trainhub_launch.report import AttemptFact, OutputFile
from trainhub_launch.states import Phase
from workspaces import process_caches
from workspaces.stored_files.blob_writer import BlobWriter

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
SECRET = b"SECRETARTIFACT"
SHA256 = hashlib.sha256(SECRET).hexdigest()


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    process_caches.clear_all()
    async with opened() as opened_client:
        yield opened_client


def stored(content: bytes) -> str:
    with BlobWriter() as writer:
        writer.write(content)
        return writer.finish()


@sync_to_async
def left_by(run: Run, content: bytes = SECRET) -> None:
    outputs.put_output(run, 1, "secret.txt", stored(content), len(content))


async def hostile() -> tuple[Node, Headers, Run]:
    """A node that holds a run of the workspace `other`, while a run of the workspace `default` has left
    SECRET."""
    node, headers = await enrolled("hostile")
    who, _ = await contributor()
    await left_by(await claimed(who, node))
    await sync_to_async(lambda: AttemptNode.objects.update(settled_at="2026-01-01T00:00:00Z"))()
    run = await claimed(await sync_to_async(other_principal)(), node)
    return node, headers, run


async def names(
    client: httpx.AsyncClient, headers: Headers, run: Run, *files: tuple[str, bytes]
) -> httpx.Response:
    """Reports the run as done with these files as outputs."""
    named = tuple(OutputFile(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in files)
    fact = AttemptFact(run.pk, 1, Phase.DONE, phase_at={"done": 1.0}, members=(ended(0),), outputs=named)
    return await client.post("/api/v1/node/report/", headers=headers, content=packed(fact))


async def test_a_node_cannot_name_a_file_of_another_workspace_as_its_output(
    client: httpx.AsyncClient,
) -> None:
    _, headers, run = await hostile()
    other = bearing(await sync_to_async(other_token)())
    assert (await names(client, headers, run, ("stolen.txt", SECRET))).status_code == 200
    answer = await client.get(f"/api/v1/runs/{run.pk}/outputs/stolen.txt", headers=other)
    assert (answer.status_code, SECRET in answer.content) == (404, False)


async def test_a_node_does_not_learn_by_a_hash_what_others_have_stored(client: httpx.AsyncClient) -> None:
    _, headers, _ = await hostile()
    answers = [
        await client.head(f"/api/v1/uploads/{sha256}", headers=headers) for sha256 in (SHA256, "0" * 64)
    ]
    told = [
        {name: value for name, value in answer.headers.items() if name.startswith("upload-")}
        for answer in answers
    ]
    assert told[0] == told[1] == {"upload-offset": "0", "upload-complete": "false"}


async def test_a_node_that_has_sent_the_bytes_may_name_them_also_after_a_restart_of_the_hub(
    client: httpx.AsyncClient,
) -> None:
    _, headers, run = await hostile()
    sent = await Upload(client, f"/api/v1/uploads/{SHA256}", headers, SECRET).put(0, len(SECRET))
    assert sent.headers["upload-complete"] == "true"
    assert (await client.head(f"/api/v1/uploads/{SHA256}", headers=headers)).headers[
        "upload-complete"
    ] == "true"
    process_caches.clear_all()
    await names(client, headers, run, ("own.txt", SECRET))
    assert await sync_to_async(
        lambda: list(Artifact.objects.filter(run=run).values_list("path", flat=True))
    )() == ["own.txt"]


async def test_what_it_sent_for_an_earlier_attempt_gives_it_nothing_in_a_later_one(
    client: httpx.AsyncClient,
) -> None:
    node, headers, run = await hostile()
    await Upload(client, f"/api/v1/uploads/{SHA256}", headers, SECRET).put(0, len(SECRET))
    await sync_to_async(lambda: AttemptNode.objects.update(settled_at="2026-01-01T00:00:00Z"))()
    later = await claimed(await sync_to_async(other_principal)(), node)
    assert later.pk != run.pk
    assert (await client.head(f"/api/v1/uploads/{SHA256}", headers=headers)).headers[
        "upload-complete"
    ] == "false"
    await names(client, headers, later, ("again.txt", SECRET))
    assert not await sync_to_async(Artifact.objects.filter(run=later).exists)()


async def test_a_node_that_holds_runs_of_two_workspaces_gets_nothing_of_one_for_the_other(
    client: httpx.AsyncClient,
) -> None:
    node, headers = await enrolled("hostile")
    who, _ = await contributor()
    await left_by(await claimed(who, node))
    run = await claimed(await sync_to_async(other_principal)(), node)
    assert (await client.head(f"/api/v1/uploads/{SHA256}", headers=headers)).headers[
        "upload-complete"
    ] == "false"
    await names(client, headers, run, ("stolen.txt", SECRET))
    assert not await sync_to_async(Artifact.objects.filter(run=run).exists)()


async def test_a_file_that_the_workspace_has_already_need_not_be_sent_again(
    client: httpx.AsyncClient,
) -> None:
    node, headers = await enrolled()
    who, _ = await contributor()
    await left_by(await claimed(who, node))
    await sync_to_async(lambda: AttemptNode.objects.update(settled_at="2026-01-01T00:00:00Z"))()
    run = await claimed(who, node)
    assert (await client.head(f"/api/v1/uploads/{SHA256}", headers=headers)).headers[
        "upload-complete"
    ] == "true"
    await names(client, headers, run, ("same.txt", SECRET))
    assert await sync_to_async(Artifact.objects.filter(run=run, path="same.txt").exists)()


async def test_an_attempt_that_was_held_when_the_hub_was_upgraded_keeps_its_outputs(
    client: httpx.AsyncClient,
) -> None:
    """Before the upgrade the hub did not record what a node sent: such an attempt is not to lose its
    files."""
    _, headers, run = await hostile()
    data = os.urandom(100)
    await sync_to_async(stored)(data)
    await sync_to_async(lambda: AttemptNode.objects.filter(settled_at=None).update(sends_unrecorded=True))()
    await names(client, headers, run, ("model.pt", data))
    assert await sync_to_async(Artifact.objects.filter(run=run, path="model.pt").exists)()


async def test_a_person_does_not_learn_by_a_hash_what_other_workspaces_have_stored(
    client: httpx.AsyncClient,
) -> None:
    await hostile()
    other = bearing(await sync_to_async(other_token)())
    for sha256 in (SHA256, "0" * 64):
        answer = await client.head(f"/api/v1/uploads/{sha256}", headers=other)
        assert (answer.headers["upload-offset"], answer.headers["upload-complete"]) == ("0", "false")
