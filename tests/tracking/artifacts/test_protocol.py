"""MLflow's artifact protocol: storing, listing and deleting files."""

from __future__ import annotations

import asyncio
import hashlib
import os

import httpx
import pytest
from asgiref.sync import sync_to_async

from jobs.models import Artifact
from tests.tracking.artifacts.raw import ARTIFACTS, create_model, logged_run_client, store_files, stored_paths

pytestmark = pytest.mark.django_db(transaction=True)


class TestStoring:
    async def test_and_fetching_gives_the_same_bytes_with_range_and_hash(
        self, client: httpx.AsyncClient
    ) -> None:
        at, content = await logged_run_client(), os.urandom(9_000_000)
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
        at = await logged_run_client()
        for content in (b"first", b"second"):
            await client.put(f"{at.url}/a.txt", headers=at.contributor, content=content)
        assert (await client.get(f"{at.url}/a.txt", headers=at.viewer)).content == b"second"

    async def test_an_empty_file_is_a_file(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await client.put(f"{at.url}/empty", headers=at.contributor, content=b"")
        listed = await client.get(ARTIFACTS, params={"path": at.root}, headers=at.viewer)
        assert listed.json() == {"files": [{"path": "empty", "is_dir": False, "file_size": 0}]}

    async def test_below_a_file_or_over_a_folder_is_refused(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await client.put(f"{at.url}/a/b", headers=at.contributor, content=b"1")
        for path in ("a", "a/b/c"):
            answer = await client.put(f"{at.url}/{path}", headers=at.contributor, content=b"2")
            assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")

    async def test_of_a_file_and_a_folder_of_one_name_at_once_takes_one(
        self, client: httpx.AsyncClient
    ) -> None:
        at = await logged_run_client()
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
        at = await logged_run_client()
        model = await create_model(at.run)
        root = f"{at.run.experiment_id}/models/{model.pk}/artifacts"
        await client.put(f"{ARTIFACTS}/{root}/MLmodel", headers=at.contributor, content=b"flavors: {}")
        assert (await client.get(ARTIFACTS, params={"path": root}, headers=at.viewer)).json()["files"][0][
            "path"
        ] == "MLmodel"
        assert (await client.get(ARTIFACTS, params={"path": at.root}, headers=at.viewer)).json() == {
            "files": []
        }
        directories = f"/api/2.0/mlflow/logged-models/{model.pk}/artifacts/directories"
        response = (await client.get(directories, headers=at.viewer)).json()
        assert response["root_uri"] == f"mlflow-artifacts:/{root}"

    async def test_by_the_addresses_of_mlflows_own_pages(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        query = {"run_uuid": at.run.pk, "path": "plots/a.png"}
        put = await client.post(
            "/ajax-api/2.0/mlflow/upload-artifact", params=query, headers=at.contributor, content=b"png"
        )
        assert put.status_code == 200
        got = await client.get("/get-artifact", params=query, headers=at.viewer)
        assert got.content == b"png"
        assert got.headers["content-disposition"].startswith("attachment")
        params = {"run_id": at.run.pk, "path": "plots"}
        listed = await client.get("/api/2.0/mlflow/artifacts/list", params=params, headers=at.viewer)
        assert listed.json() == {
            "root_uri": f"mlflow-artifacts:/{at.root}",
            "files": [{"path": "plots/a.png", "is_dir": False, "file_size": 3}],
        }


class TestListing:
    async def test_shows_one_folder_with_names_relative_to_it(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, **{"a/b/one": "1", "a/b/two": "22", "a/c": "3", "A/x": "4", "top": "5"})
        params = {
            path: (
                await client.get(ARTIFACTS, params={"path": f"{at.root}{path}"}, headers=at.viewer)
            ).json()["files"]
            for path in ("", "/a", "/a/b/", "/a/c", "/nothing")
        }
        assert [item["path"] for item in params[""]] == ["A", "a", "top"]
        assert params["/a"] == [{"path": "b", "is_dir": True}, {"path": "c", "is_dir": False, "file_size": 1}]
        assert [item["path"] for item in params["/a/b/"]] == ["one", "two"]
        assert params["/a/c"] == params["/nothing"] == []

    async def test_joins_the_attempts_and_the_latest_file_counts(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client(attempt=3)
        await store_files(at.run, 1, both="first", early="1")
        await store_files(at.run, 2, both="second", middle="2")
        await store_files(at.run, 3, both="third")
        listed = await client.get(ARTIFACTS, params={"path": at.root}, headers=at.viewer)
        assert [item["path"] for item in listed.json()["files"]] == ["both", "early", "middle"]
        assert (await client.get(f"{at.url}/both", headers=at.viewer)).text == "third"


class TestDeleting:
    async def test_a_file_or_a_folder_in_every_attempt(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client(attempt=2)
        await store_files(at.run, 1, **{"a/x": "1", "b": "1"})
        await store_files(at.run, 2, **{"a/x": "2", "ab": "2"})
        assert (await client.delete(f"{at.url}/a", headers=at.contributor)).status_code == 200
        assert (await client.delete(f"{at.url}/b", headers=at.contributor)).status_code == 200
        assert await stored_paths() == ["ab"]
        assert (await client.delete(f"{at.url}/b", headers=at.contributor)).json()[
            "error_code"
        ] == "RESOURCE_DOES_NOT_EXIST"

    async def test_the_root_deletes_all(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, a="1", b="2")
        assert (await client.delete(f"{at.url}/", headers=at.contributor)).status_code == 200
        assert await stored_paths() == []

    async def test_files_of_a_logged_model_leaves_those_of_its_run(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        model = await create_model(at.run)
        await store_files(at.run, 0, **{"data/x": "1"})
        url = f"{ARTIFACTS}/{at.run.experiment_id}/models/{model.pk}/artifacts"
        for name in ("data/x", "data/y", "MLmodel"):
            await client.put(f"{url}/{name}", headers=at.contributor, content=b"1")
        assert (await client.delete(f"{url}/data", headers=at.contributor)).status_code == 200
        root = f"{at.run.experiment_id}/models/{model.pk}/artifacts"
        response = (await client.get(ARTIFACTS, params={"path": root}, headers=at.viewer)).json()
        assert [item["path"] for item in response["files"]] == ["MLmodel"]
        assert await stored_paths() == ["data/x"]
