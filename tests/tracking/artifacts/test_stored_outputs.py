"""Outputs in a datastore as MLflow's client and the pages get them, from Microsoft's emulator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async

from datastores.changes import create
from datastores.models import Datastore
from jobs.models import Run
from tests.jobs.stored_outputs.builders import FILES, add_outputs
from tests.people import make_owner, principal_of
from tests.stores.azurite import ACCOUNT, CONTAINER, azurite, signature
from tests.tracking.artifacts.raw import ARTIFACTS, LoggedRunClient, logged_run_client, store_files
from workspaces.secrets import store

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
LATER, EARLIER = "2090-01-01T00:00:00Z", "2020-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    files = {f"results/run-7/1/{name}": content for name, content in FILES.items()}
    with azurite(tmp_path_factory.mktemp("azurite"), "127.0.0.1", files) as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.IS_ON_LOOPBACK_ONLY, settings.OWN_PORTS = True, set()


@sync_to_async
def add_container(run: Run, endpoint: str) -> Datastore:
    """Puts the outputs of the run into the container, beside those on the hub."""
    owner = principal_of(make_owner())
    store.put(owner, "sas", signature(LATER), store.WORKSPACE)
    fields = {"account": ACCOUNT, "container": CONTAINER, "endpoint": endpoint, "secret": "sas"}
    container = create(owner, "blobs", "azure_blob", {**fields, "path": "results"})
    Run.objects.filter(pk=run.pk).update(number=7, attempt=1)
    run.refresh_from_db()
    add_outputs(run, container, FILES)
    return container


async def prepared(endpoint: str) -> LoggedRunClient:
    at = await logged_run_client()
    await store_files(at.run, 1, **{"plots/notes.txt": "notes"})
    await add_container(at.run, endpoint)
    return at


class TestMlflow:
    async def test_lists_and_fetches_both_kinds(self, client: httpx.AsyncClient, endpoint: str) -> None:
        at = await prepared(endpoint)
        listed = await client.get(ARTIFACTS, headers=at.viewer, params={"path": at.root})
        assert [file["path"] for file in listed.json()["files"]] == ["model.pt", "plots"]
        plots = await client.get(
            "/api/2.0/mlflow/artifacts/list",
            headers=at.viewer,
            params={"run_id": at.run.pk, "path": "plots"},
        )
        assert [(file["path"], file["file_size"]) for file in plots.json()["files"]] == [
            ("plots/loss.txt", 4),
            ("plots/notes.txt", 5),
        ]
        answer = await client.get(f"{at.url}/model.pt", headers=at.viewer)
        assert (answer.status_code, answer.content) == (200, FILES["model.pt"])
        assert answer.headers["content-disposition"].startswith("attachment")
        page = await client.get(
            "/get-artifact", headers=at.viewer, params={"run_id": at.run.pk, "path": "plots/loss.txt"}
        )
        assert page.content == b"0.5\n"
        part = await client.get(f"{at.url}/model.pt", headers={**at.viewer, "Range": "bytes=7-13"})
        assert (part.status_code, part.content) == (206, b"weights")
        assert (await client.get(f"{at.url}/model.pt", headers=at.other)).status_code == 404

    async def test_does_not_write_over_or_delete_what_lies_there(
        self, client: httpx.AsyncClient, endpoint: str
    ) -> None:
        at = await prepared(endpoint)
        below = await client.put(f"{at.url}/model.pt/a.txt", headers=at.contributor, content=b"a")
        assert "'model.pt' is a file" in below.json()["message"]
        above = await client.put(f"{at.url}/plots", headers=at.contributor, content=b"a")
        assert "is a folder" in above.json()["message"]
        for path in ("/plots", "/model.pt", ""):
            deleted = await client.delete(f"{at.url}{path}", headers=at.contributor)
            assert "the hub deletes nothing there" in deleted.json()["message"]

    async def test_says_that_a_signature_has_ended(self, client: httpx.AsyncClient, endpoint: str) -> None:
        at = await prepared(endpoint)
        owner = await sync_to_async(lambda: principal_of(make_owner()))()
        await sync_to_async(store.put)(owner, "sas", signature(EARLIER), store.WORKSPACE)
        answer = await client.get(f"{at.url}/model.pt", headers=at.viewer)
        assert answer.status_code == 502
        assert "ended on 2020-01-01T00:00:00Z" in answer.json()["detail"]
        assert "sig=" not in answer.text


class TestPages:
    async def test_download_but_do_not_show_it(self, client: httpx.AsyncClient, endpoint: str) -> None:
        at = await prepared(endpoint)
        root = f"/api/v1/artifacts/files/{at.root}"
        assert (await client.get(f"{root}/plots/loss.txt", headers=at.viewer)).content == b"0.5\n"
        shown = await client.get(f"/api/v1/artifacts/previews/{at.root}/plots/loss.txt", headers=at.viewer)
        assert shown.status_code == 400
        assert "lies in a datastore, at devstoreaccount1/birds/results/run-7" in shown.json()["detail"]

    async def test_a_zip_has_only_files_of_the_hub(self, client: httpx.AsyncClient, endpoint: str) -> None:
        at = await prepared(endpoint)
        for path, names in (("", []), ("/plots", []), ("", ["model.pt"]), ("", ["plots"])):
            address = f"/api/v1/artifacts/zip/{at.root}{path}"
            answer = await client.get(address, headers=at.viewer, params={"name": names})
            assert answer.status_code == 400
            assert "Files in a datastore are in no zip" in answer.json()["detail"]
        chosen = await client.get(
            f"/api/v1/artifacts/zip/{at.root}/plots", headers=at.viewer, params={"name": "notes.txt"}
        )
        assert chosen.status_code == 200
