"""MLflow's artifact protocol: invalid paths, permissions and failed uploads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from starlette.applications import Starlette
from starlette.convertors import CONVERTOR_TYPES

from jobs import byte_routes
from jobs.models import Artifact
from jobs.tokens import attempt_token as job_token
from tests.jobs.builders import running
from tests.people import make_contributor, principal_of
from tests.tracking.artifacts.raw import (
    ARTIFACTS,
    bearer_headers,
    create_model,
    limited_disk,
    logged_run_client,
    store_files,
    stored_files,
    stored_paths,
)
from tests.tracking.builders import logged_run
from tracking.artifacts import body_writer
from tracking.artifacts.routes import routes
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db(transaction=True)
BAD = [
    "..%2fsecret",
    "%2e%2e/secret",
    "a/%2e%2e/b",
    "a%252f..%252fb",
    "%252e%252e/b",
    "a%5cb",
    "..%5cb",
    "/etc/passwd",
    "a//b",
    "%2e/a",
    "a/%2e",
    "C:%5cx",
    "C:/x",
    "a%0ab",
    "a%01b",
    "a%7fb",
    "a%ffb",
    "x" * 901,
    f"{'y' * 256}/z",
]


class TestPaths:
    @pytest.mark.parametrize("path", BAD)
    async def test_that_lead_elsewhere_are_refused_everywhere(
        self, path: str, client: httpx.AsyncClient
    ) -> None:
        at = await logged_run_client()
        query = httpx.QueryParams({"run_uuid": at.run.pk}).__str__() + f"&path={path}"
        answers = [
            await client.put(f"{at.url}/{path}", headers=at.contributor, content=b"x"),
            await client.get(f"{at.url}/{path}", headers=at.contributor),
            await client.delete(f"{at.url}/{path}", headers=at.contributor),
            await client.get(f"{ARTIFACTS}?path={at.root}/{path}", headers=at.contributor),
            await client.get(f"/get-artifact?{query}", headers=at.contributor),
            await client.post(
                f"/ajax-api/2.0/mlflow/upload-artifact?{query}", headers=at.contributor, content=b"x"
            ),
            await client.get(f"/api/2.0/mlflow/artifacts/list?{query}", headers=at.contributor),
        ]
        for answer in answers:
            assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), (
                answer.url
            )
            assert answer.json()["message"].startswith("path: ")
        assert await stored_paths() == []

    @pytest.mark.parametrize("path", ["", "1", "1/x/artifacts/a", "x/y/z", "../1/artifacts"])
    async def test_outside_every_run_are_refused(self, path: str, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        answer = await client.get(ARTIFACTS, params={"path": path}, headers=at.viewer)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")

    async def test_of_any_language_with_percent_and_hash_are_taken_as_they_are(
        self, client: httpx.AsyncClient
    ) -> None:
        at = await logged_run_client()
        for name in ("größe 模型.txt", "100% #1.txt", "a b/c+d"):
            assert (
                await client.put(f"{at.url}/{quote(name)}", headers=at.contributor, content=name.encode())
            ).status_code == 200
        assert await stored_paths() == ["100% #1.txt", "a b/c+d", "größe 模型.txt"]

    async def test_below_another_experiment_lead_nowhere(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, a="1")
        for experiment in (0, at.run.experiment_id + 1):
            url = f"{ARTIFACTS}/{experiment}/{at.run.pk}/artifacts/a"
            answer = await client.get(url, headers=at.viewer)
            assert (answer.status_code, answer.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
            assert f"is not in the experiment {experiment}" in answer.json()["message"]

    async def test_below_the_default_experiment_may_call_it_0(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client(experiment="default")
        model = await create_model(at.run)
        for owner in (at.run.pk, f"models/{model.pk}"):
            url = f"{ARTIFACTS}/0/{owner}/artifacts/a"
            assert (await client.put(url, headers=at.contributor, content=b"1")).status_code == 200
            assert (await client.get(url, headers=at.viewer)).content == b"1"

    async def test_of_a_folder_or_of_everything_are_no_file(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, **{"a/x": "1"})
        for url, words in ((f"{at.url}/a", "refers to a directory"), (at.url, "name a file below")):
            answer = await client.get(url, headers=at.viewer)
            assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
            assert words in answer.json()["message"]

    async def test_that_stand_twice_in_an_address_are_refused(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        answer = await client.get(ARTIFACTS, params={"path": [at.root, "b"]}, headers=at.viewer)
        assert (answer.status_code, answer.json()["message"]) == (400, "path: give it once, as text.")


class TestAccess:
    async def test_a_deleted_run_takes_no_file_and_gives_those_it_has(
        self, client: httpx.AsyncClient
    ) -> None:
        at = await logged_run_client(deleted_at=timezone.now())
        await store_files(at.run, 0, a="1")
        for answer in (
            await client.put(f"{at.url}/a", headers=at.contributor, content=b"2"),
            await client.delete(f"{at.url}/a", headers=at.contributor),
        ):
            assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
            assert "is deleted; restore it before you log to it" in answer.json()["message"]
        assert (await client.get(f"{at.url}/a", headers=at.viewer)).content == b"1"

    async def test_another_workspace_sees_nothing(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, a="1")
        for answer in (
            await client.get(f"{at.url}/a", headers=at.other),
            await client.put(f"{at.url}/a", headers=at.other, content=b"x"),
            await client.delete(f"{at.url}/a", headers=at.other),
            await client.get(ARTIFACTS, params={"path": at.root}, headers=at.other),
        ):
            assert (answer.status_code, answer.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")

    async def test_nobody_is_asked_for_a_token_and_a_viewer_cannot_write(
        self, client: httpx.AsyncClient
    ) -> None:
        at = await logged_run_client()
        assert (await client.get(f"{at.url}/a")).status_code == 401
        for answer in (
            await client.put(f"{at.url}/a", headers=at.viewer, content=b"x"),
            await client.delete(f"{at.url}/a", headers=at.viewer),
        ):
            assert (answer.status_code, answer.json()["error_code"]) == (403, "PERMISSION_DENIED")

    async def test_a_job_writes_to_itself_and_its_children_alone(self, client: httpx.AsyncClient) -> None:
        job, child, stranger = await sync_to_async(_job_and_others)()
        headers = bearer_headers(job_token(job.pk, 1))
        wrote = []
        for run in (job, child, stranger):
            url = f"{ARTIFACTS}/{run.experiment_id}/{run.pk}/artifacts/a"
            wrote.append((await client.put(url, headers=headers, content=b"x")).status_code)
        assert wrote == [200, 200, 403]
        assert await sync_to_async(lambda: Artifact.objects.get(run=job).attempt)() == 1


class TestBadUploads:
    async def test_cut_in_the_middle_leave_nothing_and_a_second_try_works(
        self, client: httpx.AsyncClient
    ) -> None:
        at, stored_before = await logged_run_client(), stored_files()
        await _cut(f"{at.url}/a.bin", at.contributor, os.urandom(body_writer.PIECE_BYTES + 1000))
        assert (stored_files(), await stored_paths()) == (stored_before, [])
        assert (
            await client.put(f"{at.url}/a.bin", headers=at.contributor, content=b"whole")
        ).status_code == 200

    async def test_that_the_disk_cannot_hold_leave_nothing(self, client: httpx.AsyncClient) -> None:
        at, stored_before = await logged_run_client(), stored_files()
        with limited_disk(6 * 2**20):
            answer = await client.put(
                f"{at.url}/a.bin", headers=at.contributor, content=os.urandom(20 * 2**20)
            )
        assert (answer.status_code, answer.json()["error_code"]) == (507, "RESOURCE_EXHAUSTED")
        assert (stored_files(), await stored_paths()) == (stored_before, [])

    @pytest.mark.parametrize("length", [True, False], ids=["announced", "found out on the way"])
    async def test_that_are_too_large_leave_nothing(
        self, length: bool, client: httpx.AsyncClient, settings: Any
    ) -> None:
        at, stored_before = await logged_run_client(), stored_files()
        settings.MAX_UPLOAD_BYTES = 1000
        content = b"x" * 1001 if length else _by_and_by(b"x" * 600, b"x" * 600)
        answer = await client.put(f"{at.url}/a.bin", headers=at.contributor, content=content)
        assert (answer.status_code, answer.json()["error_code"]) == (413, "INVALID_PARAMETER_VALUE")
        assert (stored_files(), await stored_paths()) == (stored_before, [])

    async def test_a_file_whose_bytes_are_lost_is_said_to_be(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, a="lost")
        blobs.path(hashlib.sha256(b"lost").hexdigest()).unlink()
        answer = await client.get(f"{at.url}/a", headers=at.viewer)
        assert answer.status_code == 404
        assert "missing on the hub" in answer.json()["message"]


def _job_and_others() -> tuple[Any, Any, Any]:
    _, job = running(principal_of(make_contributor()))
    return job, logged_run(parent=job), logged_run()


async def _by_and_by(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def _cut(url: str, headers: dict[str, str], sent: bytes) -> None:
    """A PUT whose client goes away after `sent`, though it had promised more."""
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": sent, "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(_: Any) -> None:
        """Nobody is there to be answered."""

    query = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": "PUT",
        "path": url,
        "raw_path": url.encode(),
        "query_string": b"",
        "headers": query,
        "server": ("hub", 80),
        "scheme": "http",
        "root_path": "",
    }
    await Starlette(routes=routes)(scope, receive, send)


def test_the_pattern_of_artifact_paths_is_no_other_packages() -> None:
    """Convertors of URLs are global by name: one that is registered twice changes the routes of the first."""
    assert CONVERTOR_TYPES["artifact_path"].regex == "(?s:.*)"
    assert CONVERTOR_TYPES["rest"].regex == ".*[^/]"
    assert byte_routes.routes
