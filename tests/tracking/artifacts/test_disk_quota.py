"""The quota of disk at the doors through which files of people come."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator

import httpx
import pytest
from asgiref.sync import sync_to_async

from clusters.models import Quota
from jobs.models import Artifact, Run
from jobs.states import RunState
from tests.registry.test_uploads import send, versions
from tests.tracking.artifacts.raw import (
    MPU,
    LoggedRunClient,
    logged_run_client,
    open_client,
    stored_files,
    stored_paths,
)
from trainhub.asgi import application
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)
SENTENCE = "workspace default stores 0 B, and its quota of disk is 0 B"


@sync_to_async
def limit(gib: float) -> None:
    workspace = Workspace.objects.get(slug="default")
    Quota.objects.create(workspace=workspace, scope="workspace", disk_gib=gib)


@sync_to_async
def end(at: LoggedRunClient) -> None:
    Run.objects.filter(pk=at.run.pk).update(state=RunState.COMPLETED)


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


class TestArtifacts:
    async def test_of_an_active_run_are_taken_and_of_an_ended_one_refused(self) -> None:
        async with open_client() as client:
            at = await logged_run_client(state=RunState.RUNNING)
            await limit(0)
            answer = await client.put(f"{at.url}/a", headers=at.contributor, content=b"abc")
            assert answer.status_code == 200, answer.text
            await end(at)
            before = stored_files()
            await sync_to_async(Artifact.objects.all().delete)()
            for content in (b"new", chunks(b"chunked")):
                answer = await client.put(f"{at.url}/b", headers=at.contributor, content=content)
                assert answer.status_code == 403
                assert answer.json()["error_code"] == "PERMISSION_DENIED"
                assert answer.json()["message"].startswith(f"path: {SENTENCE}; delete runs")
            body = {"path": "b", "num_parts": 1}
            answer = await client.post(f"{MPU}/create/{at.root}/b", headers=at.contributor, json=body)
            assert answer.status_code == 403
            assert await stored_paths() == []
            assert stored_files() == before
            # Deleting is the remedy, and needs no room.
            answer = await client.delete(at.url, headers=at.contributor)
            assert answer.status_code == 200, answer.text

    async def test_of_an_unknown_size_are_refused_once_it_is_known(self) -> None:
        async with open_client() as client:
            at = await logged_run_client(state=RunState.COMPLETED)
            await limit(0.0001)
            sent = chunks(os.urandom(200_000))
            answer = await client.put(f"{at.url}/b", headers=at.contributor, content=sent)
            assert answer.status_code == 403
            assert "with 195.3 KiB more it would be above its quota of disk, 104.9 KiB" in answer.text
            assert await stored_paths() == []


class TestOtherDoors:
    async def test_new_external_runs_are_refused(self) -> None:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            at = await logged_run_client()
            await limit(0)
            answer = await client.post(
                "/api/2.0/mlflow/runs/create",
                headers=at.contributor,
                json={"experiment_id": str(at.run.experiment_id)},
            )
            assert answer.status_code == 403
            assert answer.json()["message"].startswith(f"experiment_id: {SENTENCE}")

    async def test_uploaded_models_are_refused(self) -> None:
        await logged_run_client()
        await limit(0.0001)
        answer = await send()
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["field"] == "files"
        assert await versions() == 0

    async def test_files_in_pieces_are_refused_at_the_first(self) -> None:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(application), base_url="http://testserver"
        ) as client:
            at = await logged_run_client()
            await limit(0)
            url = f"/api/v1/uploads/{hashlib.sha256(b'abc').hexdigest()}"
            headers = {**at.contributor, "Content-Range": "bytes 0-2/3"}
            answer = await client.put(url, headers=headers, content=b"abc")
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (403, "file"), answer.text
