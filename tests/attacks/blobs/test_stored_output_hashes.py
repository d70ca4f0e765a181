"""A node says which hash an output in a datastore has, and the hub cannot check that. It gives nobody a file
of the hub, and says nothing about what is stored here."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import httpx
import pytest
from asgiref.sync import sync_to_async

from datastores.models import Datastore
from jobs.models import Artifact, Run
from registry.models import ModelFile, ModelVersion
from registry.registration import register
from registry.scanning import versions
from registry.transfer.routes import routes as model_routes
from tests.attacks.blobs.test_foreign_hashes import SECRET, SHA256, hostile, names
from tests.jobs.raw import bearing, opened, other_principal, other_token
from tests.jobs.stored_outputs.builders import add_bucket, add_outputs
from tests.people import make_person, principal_of
from tests.stores.s3_server import BUCKET, S3Server
from tracking.artifacts.routes import routes as artifact_routes
from workspaces import process_caches
from workspaces.states import Role
from workspaces.stored_files import blob_names

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
# As long as the file whose hash the node names.
OWN = b"x" * len(SECRET)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    process_caches.clear_all()
    async with opened(*artifact_routes, *model_routes) as client:
        yield client


@sync_to_async
def name_as_stored(run: Run, s3_server: S3Server, sha256: str = SHA256) -> None:
    """What the hub records when a node says that it has put that file into the bucket of its workspace."""
    owner = make_person("olga", Role.OWNER, run.workspace)
    Datastore.objects.all().delete()
    datastore = add_bucket(principal_of(owner), s3_server)
    (row,) = add_outputs(run, datastore, {"stolen.txt": OWN}, hashes={"stolen.txt": sha256})
    s3_server.objects[BUCKET][row.full_path] = OWN


@sync_to_async
def register_it(run: Run) -> ModelVersion:
    return register(run.workspace, "stolen", run, "stolen.txt", other_principal().user)


async def test_no_download_of_it_has_the_file_of_another_workspace(
    client: httpx.AsyncClient, s3_server: S3Server
) -> None:
    _, _, run = await hostile()
    await name_as_stored(run, s3_server)
    await register_it(run)
    headers = bearing(await sync_to_async(other_token)())
    root = f"{run.experiment_id}/{run.pk}/artifacts"
    addresses = [
        f"/api/v1/runs/{run.pk}/outputs/stolen.txt",
        f"/api/v1/artifacts/files/{root}/stolen.txt",
        f"/api/v1/artifacts/pages/{root}/stolen.txt",
        f"/api/v1/artifacts/previews/{root}/stolen.txt",
        f"/api/v1/artifacts/zip/{root}",
        f"/api/2.0/mlflow-artifacts/artifacts/{root}/stolen.txt",
        "/api/v1/models/stolen/versions/1/files/stolen.txt",
        "/api/v1/models/stolen/versions/1/zip",
    ]
    for address in addresses:
        answer = await client.get(address, headers=headers)
        assert (answer.status_code >= 400, SECRET in answer.content) == (True, False), address
        part = await client.get(address, headers={**headers, "Range": "bytes=0-5"})
        assert SECRET[:6] not in part.content, address


async def test_its_hash_opens_no_file_afterwards(client: httpx.AsyncClient, s3_server: S3Server) -> None:
    _, node, run = await hostile()
    await name_as_stored(run, s3_server)
    version = await register_it(run)
    assert await sync_to_async(blob_names.named_in)(run.workspace_id, [SHA256]) == set()
    headers = bearing(await sync_to_async(other_token)())
    for who in (node, headers):
        answer = await client.head(f"/api/v1/uploads/{SHA256}", headers=who)
        assert (answer.headers["upload-offset"], answer.headers["upload-complete"]) == ("0", "false")
    await names(client, node, run, ("again.txt", SECRET))
    assert not await Artifact.objects.filter(run=run).aexists()
    await sync_to_async(versions.scan)(version.pk)
    await version.arefresh_from_db()
    assert version.scan is not None
    assert version.scan["stolen.txt"]["verdict"] == "not_scanned"
    assert not await ModelFile.objects.filter(version=version).aexists()


async def test_answers_are_the_same_for_a_hash_that_nobody_has(
    client: httpx.AsyncClient, s3_server: S3Server
) -> None:
    _, _, run = await hostile()
    headers = bearing(await sync_to_async(other_token)())
    answers = []
    for sha256 in (SHA256, hashlib.sha256(b"nobody").hexdigest()):
        await sync_to_async(run.output_folders.all().delete)()
        await name_as_stored(run, s3_server, sha256)
        address = f"/api/v1/runs/{run.pk}/outputs/stolen.txt"
        for more in ({}, {"Range": "bytes=0-3"}, {"If-None-Match": f'"{sha256}"'}):
            answer = await client.get(address, headers={**headers, **more})
            answers.append((answer.status_code, answer.content))
    assert answers[:3] == answers[3:]
