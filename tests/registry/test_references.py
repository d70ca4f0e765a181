"""Versions whose files lie in a datastore: the registry names them, and the hub streams them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse
from httpx import ASGITransport, AsyncClient, Response

from datastores import changes
from datastores.models import Datastore
from jobs.models import OutputFolder, Run
from jobs.states import RunState
from registry import deletion
from registry.certificates import issuance
from registry.exports.bundle import export_request
from registry.exports.options import Options, candidates
from registry.models import ModelFile, ModelVersion, ReferencedFile
from registry.registration import register
from registry.scanning import versions
from registry.verifying.trainhub_verify import VERIFIED
from tests.jobs.stored_outputs.builders import FILES, stored_run
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_owner,
    make_viewer,
    principal_of,
    token_of,
)
from tests.registry.builders import add_output
from tests.registry.downloads import verified
from tests.stores.s3_server import BUCKET, S3Server
from trainhub.asgi import application
from workspaces.stored_files import blob_names

pytestmark = pytest.mark.django_db(transaction=True)
API = "/api/v1/models/digits/versions"
MLFLOW = "/api/2.0/mlflow-artifacts/artifacts"


@pytest.fixture
def run(s3_server: S3Server) -> Run:
    """A run with `model.pt` and `plots/loss.txt` in a bucket, and `plots/notes.txt` on the hub."""
    run, _ = stored_run(principal_of(make_owner()), s3_server)
    add_output(run, "plots/notes.txt")
    return run


@pytest.fixture
def version(run: Run) -> ModelVersion:
    return register(run.workspace, "digits", run, "plots", make_contributor())


def fetch(address: str, method: str = "GET", *, json: Any = None, **headers: str) -> Response:
    headers["Authorization"] = f"Bearer {token_of(make_contributor())}"

    async def send() -> Response:
        async with AsyncClient(transport=ASGITransport(application), base_url="http://testserver") as client:
            return await client.request(method, address, json=json, headers=headers)

    return async_to_sync(send)()


class TestRegistering:
    def test_mixes_files_of_both_kinds(self, version: ModelVersion, run: Run) -> None:
        assert [file.path for file in version.files.all()] == ["notes.txt"]
        (referenced,) = version.referenced_files.all()
        place = f"s3://{BUCKET}/results/run-{run.number}/1/plots/loss.txt"
        assert (referenced.path, referenced.place, referenced.size_bytes) == ("loss.txt", place, 4)
        listed = {file["path"]: file for file in issuance.manifest_of(version)["files"]}
        assert listed["loss.txt"] == {
            "path": "loss.txt",
            "size_bytes": 4,
            "sha256": hashlib.sha256(FILES["plots/loss.txt"]).hexdigest(),
            "place": place,
        }
        assert "place" not in listed["notes.txt"]

    def test_waits_for_the_end_of_a_run_that_may_still_change_them(self, run: Run) -> None:
        Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING, attempt=1)
        api = api_client(make_contributor())
        refused = api.post(f"{API}/", {"run": run.pk, "path": "plots"}, "application/json")
        assert refused.status_code == 400
        (error,) = refused.json()["errors"]
        assert error["field"] == "path"
        assert f"plots/loss.txt lies in a datastore, where {run} may still change it" in error["message"]
        on_hub = api.post(f"{API}/", {"run": run.pk, "path": "plots/notes.txt"}, "application/json")
        assert on_hub.status_code == 201

    def test_by_the_api_the_page_and_mlflow(self, run: Run) -> None:
        api = api_client(make_contributor())
        made = api.post(f"{API}/", {"run": run.pk, "path": "model.pt"}, "application/json").json()
        assert made["files"][0]["place"].endswith(f"/run-{run.number}/1/model.pt")
        page = client_of(make_contributor()).post(
            reverse("register"), {"name": "digits", "run": run.pk, "path": "plots/loss.txt"}
        )
        assert page.status_code == 302, page.content
        source = f"runs:/{run.pk}/plots"
        body = {"name": "digits", "source": source, "run_id": run.pk}
        created = fetch("/api/2.0/mlflow/model-versions/create", "POST", json=body)
        assert created.status_code == 200, created.text
        newest = ModelVersion.objects.get(number=3)
        assert [file.path for file in newest.all_files] == ["loss.txt", "notes.txt"]
        form = client_of(make_contributor()).get(reverse("register"), {"run": run.number}).content.decode()
        assert 'value="model.pt"' in form

    def test_of_a_copy_keeps_the_reference(self, version: ModelVersion) -> None:
        api = api_client(make_contributor())
        made = api.post("/api/v1/models/other/versions/", {"source": "models:/digits/1"}, "application/json")
        assert [file["place"] for file in made.json()["files"]] == [version.referenced_files.get().place, ""]

    def test_names_no_stored_file(self, version: ModelVersion) -> None:
        assert ReferencedFile not in blob_names.TABLES
        hashes = [file.sha256 for file in version.all_files]
        assert blob_names.named_in(version.model.workspace_id, hashes) == {version.files.get().sha256}


class TestDownload:
    def test_streams_a_file_from_the_store(self, version: ModelVersion) -> None:
        for address in (
            f"{API}/1/files/loss.txt",
            "/api/2.0/mlflow-artifacts/artifacts/models/digits/1/loss.txt",
        ):
            answer = fetch(address)
            assert (answer.status_code, answer.content) == (200, b"0.5\n")
        part = fetch(f"{API}/1/files/loss.txt", Range="bytes=0-1")
        assert (part.status_code, part.content) == (206, b"0.")
        assert fetch(f"{API}/1/files/loss.txt", "HEAD").headers["content-length"] == "4"
        assert fetch(f"{API}/1/files/notes.txt").content == b"plots/notes.txt"

    def test_of_all_files_can_be_verified(self, version: ModelVersion, tmp_path: Path) -> None:
        listed = fetch(f"{MLFLOW}?path=models/digits/1").json()["files"]
        assert len(listed) == 4
        for file in listed:
            (tmp_path / file["path"]).write_bytes(fetch(f"{MLFLOW}/models/digits/1/{file['path']}").content)
        report = verified(tmp_path)
        assert (report.status, report.files, report.findings) == (VERIFIED, 2, [])
        (tmp_path / "loss.txt").write_bytes(b"0.6\n")
        assert [(item.what, item.subject) for item in verified(tmp_path).findings] == [
            ("changed", "loss.txt")
        ]

    def test_as_a_zip_is_refused_with_the_number(self, version: ModelVersion) -> None:
        answer = fetch(f"{API}/1/zip")
        assert answer.status_code == 409
        assert answer.json()["detail"].startswith("Files in a datastore are in no zip: 1 of this version")

    def test_works_while_the_datastore_is_there(self, version: ModelVersion) -> None:
        changes.delete(principal_of(make_owner()), Datastore.objects.get())
        answer = fetch(f"{API}/1/files/loss.txt")
        assert answer.status_code == 409
        assert "its datastore was deleted" in answer.json()["detail"]
        assert f"s3://{BUCKET}/results" in answer.json()["detail"]
        assert fetch(f"{API}/1/files/notes.txt").status_code == 200

    def test_outlives_the_run(self, version: ModelVersion, run: Run) -> None:
        OutputFolder.objects.all().delete()
        run.artifacts.all().delete()
        run.delete()
        assert fetch(f"{API}/1/files/loss.txt").content == b"0.5\n"


class TestScan:
    def test_says_that_the_file_lies_elsewhere(self, version: ModelVersion) -> None:
        assert versions.scan(version.pk)
        version.refresh_from_db()
        assert version.scan is not None
        assert version.scan["notes.txt"]["verdict"] == "clean"
        assert version.scan["loss.txt"]["verdict"] == "not_scanned"
        assert "it lies in a datastore, at s3://" in version.scan["loss.txt"]["note"]
        page = client_of(make_viewer()).get(reverse("model-version", args=["digits", 1])).content.decode()
        assert "1 file lies in a datastore" in page
        assert "2 files" in page

    def test_of_a_version_that_has_nothing_on_the_hub(self, run: Run) -> None:
        version = register(run.workspace, "digits", run, "model.pt", make_contributor())
        assert not ModelFile.objects.filter(version=version).exists()
        assert versions.scan(version.pk)
        version.refresh_from_db()
        assert version.tags["trainhub.scan"] == "not_scanned"


class TestExport:
    def test_downloads_a_referenced_file_through_the_hub(self, run: Run) -> None:
        version = register(run.workspace, "digits", run, "model.pt", make_contributor())
        assert candidates(version) == ["model.pt"]
        files = export_request(version, Options("model.pt"), "")["files"]
        assert [file["path"] for file in files] == ["model.pt"]

    def test_of_what_the_hub_cannot_read_is_refused(self, run: Run) -> None:
        version = register(run.workspace, "digits", run, "model.pt", make_contributor())
        Datastore.objects.all().delete()
        form = {"file": "model.pt", "inputs": ["1x64 float32"]}
        api = api_client(make_contributor())
        answer = api.post(f"{API}/{version.number}/exports/", form, "application/json")
        assert "the run needs model.pt" in answer.content.decode()


def test_deleting_a_version_deletes_its_references(version: ModelVersion) -> None:
    deletion.delete_version(version, make_owner())
    assert not ReferencedFile.objects.exists()
