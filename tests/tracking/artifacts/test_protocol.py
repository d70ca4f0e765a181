from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from asgiref.sync import sync_to_async
from starlette.applications import Starlette

from jobs.models import Artifact
from jobs.tokens import token_of as job_token
from tests.jobs.builders import running
from tests.people import make_contributor, principal_of
from tests.tracking.artifacts.raw import (
    ARTIFACTS,
    bearing,
    disk_of,
    left,
    logged,
    model_of,
    opened,
    stored_files,
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


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with opened() as opened_client:
        yield opened_client


class TestStoring:
    async def test_and_fetching_gives_the_same_bytes_with_range_and_hash(
        self, client: httpx.AsyncClient
    ) -> None:
        at, content = await logged(), os.urandom(9_000_000)
        put = await client.put(f"{at.url}/checkpoints/last.pt", headers=at.contributor, content=content)
        assert (put.status_code, put.json()) == (200, {})
        got = await client.get(f"{at.url}/checkpoints/last.pt", headers=at.viewer)
        assert got.content == content
        assert got.headers["x-content-sha256"] == hashlib.sha256(content).hexdigest()
        part = await client.get(
            f"{at.url}/checkpoints/last.pt", headers={**at.viewer, "Range": "bytes=8999990-"}
        )
        assert (part.status_code, part.content) == (206, content[-10:])
        head = await client.head(f"{at.url}/checkpoints/last.pt", headers=at.viewer)
        assert (head.headers["content-length"], head.content) == ("9000000", b"")

    async def test_again_replaces_the_file(self, client: httpx.AsyncClient) -> None:
        at = await logged()
        for content in (b"first", b"second"):
            await client.put(f"{at.url}/a.txt", headers=at.contributor, content=content)
        assert (await client.get(f"{at.url}/a.txt", headers=at.viewer)).content == b"second"

    async def test_an_empty_file_is_a_file(self, client: httpx.AsyncClient) -> None:
        at = await logged()
        await client.put(f"{at.url}/empty", headers=at.contributor, content=b"")
        listed = await client.get(ARTIFACTS, params={"path": at.root}, headers=at.viewer)
        assert listed.json() == {"files": [{"path": "empty", "is_dir": False, "file_size": 0}]}

    async def test_below_a_file_or_over_a_folder_is_refused(self, client: httpx.AsyncClient) -> None:
        at = await logged()
        await client.put(f"{at.url}/a/b", headers=at.contributor, content=b"1")
        for path in ("a", "a/b/c"):
            answer = await client.put(f"{at.url}/{path}", headers=at.contributor, content=b"2")
            assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")

    async def test_of_a_file_and_a_folder_of_one_name_at_once_takes_one(
        self, client: httpx.AsyncClient
    ) -> None:
        at = await logged()
        for number in range(4):
            puts = (f"{number}", f"{number}/x", f"{number}", f"{number}/y")
            await asyncio.gather(
                *(client.put(f"{at.url}/{path}", headers=at.contributor, content=b"1") for path in puts)
            )
        paths = await sync_to_async(lambda: set(Artifact.objects.values_list("path", flat=True)))()
        assert all(
            (f"{number}" in paths) != bool({f"{number}/x", f"{number}/y"} & paths) for number in range(4)
        )

    async def test_for_a_logged_model_keeps_its_files_apart_from_the_runs(
        self, client: httpx.AsyncClient
    ) -> None:
        at = await logged()
        model = await model_of(at.run)
        root = f"{at.run.experiment_id}/models/{model.pk}/artifacts"
        await client.put(f"{ARTIFACTS}/{root}/MLmodel", headers=at.contributor, content=b"flavors: {}")
        assert (await client.get(ARTIFACTS, params={"path": root}, headers=at.viewer)).json()["files"][0][
            "path"
        ] == "MLmodel"
        assert (await client.get(ARTIFACTS, params={"path": at.root}, headers=at.viewer)).json() == {
            "files": []
        }
        directories = f"/api/2.0/mlflow/logged-models/{model.pk}/artifacts/directories"
        told = (await client.get(directories, headers=at.viewer)).json()
        assert told["root_uri"] == f"mlflow-artifacts:/{root}"

    async def test_by_the_addresses_of_mlflows_own_pages(self, client: httpx.AsyncClient) -> None:
        at = await logged()
        query = {"run_uuid": at.run.pk, "path": "plots/a.png"}
        put = await client.post(
            "/ajax-api/2.0/mlflow/upload-artifact", params=query, headers=at.contributor, content=b"png"
        )
        assert put.status_code == 200
        got = await client.get("/get-artifact", params=query, headers=at.viewer)
        assert got.content == b"png"
        assert got.headers["content-disposition"].startswith("attachment")
        asked = {"run_id": at.run.pk, "path": "plots"}
        listed = await client.get("/api/2.0/mlflow/artifacts/list", params=asked, headers=at.viewer)
        assert listed.json() == {
            "root_uri": f"mlflow-artifacts:/{at.root}",
            "files": [{"path": "plots/a.png", "is_dir": False, "file_size": 3}],
        }


class TestListing:
    async def test_shows_one_folder_with_names_relative_to_it(self, client: httpx.AsyncClient) -> None:
        at = await logged()
        await left(at.run, 0, **{"a/b/one": "1", "a/b/two": "22", "a/c": "3", "A/x": "4", "top": "5"})
        asked = {
            path: (
                await client.get(ARTIFACTS, params={"path": f"{at.root}{path}"}, headers=at.viewer)
            ).json()["files"]
            for path in ("", "/a", "/a/b/", "/a/c", "/nothing")
        }
        assert [item["path"] for item in asked[""]] == ["A", "a", "top"]
        assert asked["/a"] == [{"path": "b", "is_dir": True}, {"path": "c", "is_dir": False, "file_size": 1}]
        assert [item["path"] for item in asked["/a/b/"]] == ["one", "two"]
        assert asked["/a/c"] == asked["/nothing"] == []

    async def test_joins_the_attempts_and_the_latest_file_counts(self, client: httpx.AsyncClient) -> None:
        at = await logged(attempt=3)
        await left(at.run, 1, both="first", early="1")
        await left(at.run, 2, both="second", middle="2")
        await left(at.run, 3, both="third")
        listed = await client.get(ARTIFACTS, params={"path": at.root}, headers=at.viewer)
        assert [item["path"] for item in listed.json()["files"]] == ["both", "early", "middle"]
        assert (await client.get(f"{at.url}/both", headers=at.viewer)).text == "third"


class TestDeleting:
    async def test_a_file_or_a_folder_in_every_attempt(self, client: httpx.AsyncClient) -> None:
        at = await logged(attempt=2)
        await left(at.run, 1, **{"a/x": "1", "b": "1"})
        await left(at.run, 2, **{"a/x": "2", "ab": "2"})
        assert (await client.delete(f"{at.url}/a", headers=at.contributor)).status_code == 200
        assert (await client.delete(f"{at.url}/b", headers=at.contributor)).status_code == 200
        assert await _paths() == ["ab"]
        assert (await client.delete(f"{at.url}/b", headers=at.contributor)).json()[
            "error_code"
        ] == "RESOURCE_DOES_NOT_EXIST"

    async def test_the_root_deletes_all(self, client: httpx.AsyncClient) -> None:
        at = await logged()
        await left(at.run, 0, a="1", b="2")
        assert (await client.delete(f"{at.url}/", headers=at.contributor)).status_code == 200
        assert await _paths() == []


class TestPaths:
    @pytest.mark.parametrize("path", BAD)
    async def test_that_lead_elsewhere_are_refused_everywhere(
        self, path: str, client: httpx.AsyncClient
    ) -> None:
        at = await logged()
        told = httpx.QueryParams({"run_uuid": at.run.pk}).__str__() + f"&path={path}"
        answers = [
            await client.put(f"{at.url}/{path}", headers=at.contributor, content=b"x"),
            await client.get(f"{at.url}/{path}", headers=at.contributor),
            await client.delete(f"{at.url}/{path}", headers=at.contributor),
            await client.get(f"{ARTIFACTS}?path={at.root}/{path}", headers=at.contributor),
            await client.get(f"/get-artifact?{told}", headers=at.contributor),
            await client.post(
                f"/ajax-api/2.0/mlflow/upload-artifact?{told}", headers=at.contributor, content=b"x"
            ),
            await client.get(f"/api/2.0/mlflow/artifacts/list?{told}", headers=at.contributor),
        ]
        for answer in answers:
            assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), (
                answer.url
            )
            assert answer.json()["message"].startswith("path: ")
        assert await _paths() == []

    @pytest.mark.parametrize("path", ["", "1", "1/x/artifacts/a", "x/y/z", "../1/artifacts"])
    async def test_outside_every_run_are_refused(self, path: str, client: httpx.AsyncClient) -> None:
        at = await logged()
        answer = await client.get(ARTIFACTS, params={"path": path}, headers=at.viewer)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")

    async def test_of_any_language_with_percent_and_hash_are_taken_as_they_are(
        self, client: httpx.AsyncClient
    ) -> None:
        at = await logged()
        for name in ("größe 模型.txt", "100% #1.txt", "a b/c+d"):
            assert (
                await client.put(f"{at.url}/{quote(name)}", headers=at.contributor, content=name.encode())
            ).status_code == 200
        assert await _paths() == ["100% #1.txt", "a b/c+d", "größe 模型.txt"]


class TestAccess:
    async def test_another_workspace_sees_nothing(self, client: httpx.AsyncClient) -> None:
        at = await logged()
        await left(at.run, 0, a="1")
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
        at = await logged()
        assert (await client.get(f"{at.url}/a")).status_code == 401
        for answer in (
            await client.put(f"{at.url}/a", headers=at.viewer, content=b"x"),
            await client.delete(f"{at.url}/a", headers=at.viewer),
        ):
            assert (answer.status_code, answer.json()["error_code"]) == (403, "PERMISSION_DENIED")

    async def test_a_job_writes_to_itself_and_its_children_alone(self, client: httpx.AsyncClient) -> None:
        job, child, stranger = await sync_to_async(_job_and_others)()
        headers = bearing(job_token(job.pk, 1))
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
        at, before = await logged(), stored_files()
        await _cut(f"{at.url}/a.bin", at.contributor, os.urandom(body_writer.PIECE_BYTES + 1000))
        assert (stored_files(), await _paths()) == (before, [])
        assert (
            await client.put(f"{at.url}/a.bin", headers=at.contributor, content=b"whole")
        ).status_code == 200

    async def test_that_the_disk_cannot_hold_leave_nothing(self, client: httpx.AsyncClient) -> None:
        at, before = await logged(), stored_files()
        with disk_of(6 * 2**20):
            answer = await client.put(
                f"{at.url}/a.bin", headers=at.contributor, content=os.urandom(20 * 2**20)
            )
        assert (answer.status_code, answer.json()["error_code"]) == (507, "RESOURCE_EXHAUSTED")
        assert (stored_files(), await _paths()) == (before, [])

    @pytest.mark.parametrize("length", [True, False], ids=["announced", "found out on the way"])
    async def test_that_are_too_large_leave_nothing(
        self, length: bool, client: httpx.AsyncClient, settings: Any
    ) -> None:
        at, before = await logged(), stored_files()
        settings.MAX_UPLOAD_BYTES = 1000
        content = b"x" * 1001 if length else _by_and_by(b"x" * 600, b"x" * 600)
        answer = await client.put(f"{at.url}/a.bin", headers=at.contributor, content=content)
        assert (answer.status_code, answer.json()["error_code"]) == (413, "INVALID_PARAMETER_VALUE")
        assert (stored_files(), await _paths()) == (before, [])

    async def test_a_file_whose_bytes_are_lost_is_said_to_be(self, client: httpx.AsyncClient) -> None:
        at = await logged()
        await left(at.run, 0, a="lost")
        blobs.path(hashlib.sha256(b"lost").hexdigest()).unlink()
        answer = await client.get(f"{at.url}/a", headers=at.viewer)
        assert answer.status_code == 404
        assert "missing on the hub" in answer.json()["message"]


def _job_and_others() -> tuple[Any, Any, Any]:
    _, job = running(principal_of(make_contributor()))
    return job, logged_run(parent=job), logged_run()


@sync_to_async
def _paths() -> list[str]:
    return sorted(Artifact.objects.values_list("path", flat=True))


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

    told = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": "PUT",
        "path": url,
        "raw_path": url.encode(),
        "query_string": b"",
        "headers": told,
        "server": ("hub", 80),
        "scheme": "http",
        "root_path": "",
    }
    await Starlette(routes=routes)(scope, receive, send)
