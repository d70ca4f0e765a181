"""Uploads over the API: what is sent, what is there already, what is refused, what remains."""

from __future__ import annotations

import hashlib
import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone

from clusters.models import Quota
from datastores.datasets import file_list
from datastores.models import Dataset, DatasetFile, DatasetVersion, Datastore, UploadedFile
from datastores.uploads import file_rules, sessions
from jobs.quotas import disk_use
from tests.jobs.raw import bearing, opened
from tests.people import (
    api_client,
    make_contributor,
    make_owner,
    make_person,
    make_viewer,
    make_workspace,
    token_of,
)
from workspaces.models import AuditEvent, Workspace
from workspaces.states import Role
from workspaces.stored_files import blob_gc, blobs
from workspaces.stored_files.blob_writer import BlobWriter

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
API = "/api/v1/datasets/birds/"
TIME = 1_700_000_000.25


class Uploader:
    """A person who uploads into the dataset birds."""

    def __init__(self, user: Any, workspace: Workspace | None = None) -> None:
        self.user = user
        self.api: Client = api_client(user)
        self.headers = bearing(token_of(user, workspace))
        self.number = 1

    @property
    def address(self) -> str:
        return f"{API}versions/{self.number}/upload/"

    def begin(self) -> Any:
        answer = self.api.post(f"{API}uploads/")
        if answer.status_code == 201:
            self.number = answer.json()["version"]
        return answer

    def name(self, *files: dict[str, object]) -> Any:
        return self.api.post(f"{self.address}files/", {"files": files}, "application/json")

    def put(self, path: str, data: bytes, query: str = "", **headers: str) -> httpx.Response:
        return async_to_sync(self._put)(f"{self.address}files/{quote(path)}{query}", data, headers)

    async def _put(self, address: str, data: bytes, headers: dict[str, str]) -> httpx.Response:
        async with opened() as client:
            return await client.put(address, content=data, headers={**self.headers, **headers})

    def finish(self, files: int | None = None) -> Any:
        return self.api.post(f"{self.address}finish/", {"files": files}, "application/json")


@pytest.fixture
def carl() -> Uploader:
    user = make_contributor()
    api = api_client(user)
    api.post("/api/v1/datastores/", {"name": "here", "kind": "hub"}, "application/json")
    answer = api.post("/api/v1/datasets/", {"name": "birds", "datastore": "here"}, "application/json")
    assert (answer.status_code, answer.json()["state"]) == (201, "uploading")
    return Uploader(user)


def paths(number: int = 1) -> list[str]:
    version = DatasetVersion.objects.select_related("manifest").get(dataset__name="birds", number=number)
    return [file.path for file in file_list.read_page(version, 0, 100)]


def facts(path: str, data: bytes, **more: object) -> dict[str, object]:
    return {"path": path, "size": len(data), "modified_at": TIME, **more}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class TestFiles:
    def test_become_a_version_with_their_content(self, carl: Uploader) -> None:
        named = carl.name(facts("b/1.bin", b"one"), facts("a.bin", b""))
        assert [item["path"] for item in named.json()["missing"]] == ["b/1.bin", "a.bin"]
        assert carl.put("b/1.bin", b"one", f"?modified_at={TIME}").status_code == 204
        assert carl.put("b/1.bin", b"one", f"?modified_at={TIME}").status_code == 204, "twice is the same"
        assert carl.put("a.bin", b"").status_code == 204
        answer = carl.finish(2).json()
        assert (answer["state"], answer["files"], answer["bytes"]) == ("ready", 2, 3)
        page = carl.api.get(f"{API}versions/1/files/").json()["files"]
        assert [file["path"] for file in page] == ["a.bin", "b/1.bin"]
        assert page[1]["etag"] == f'"{sha256(b"one")}"'
        assert not UploadedFile.objects.exists()
        assert AuditEvent.objects.filter(verb="dataset.upload", subject="birds 1").exists()

    def test_of_an_upload_that_was_broken_off_are_not_sent_again(self, carl: Uploader) -> None:
        carl.put("a.bin", b"aa", f"?modified_at={TIME}")
        assert carl.begin().json()["version"] == 1
        named = carl.name(facts("a.bin", b"aa"), facts("b.bin", b"bb")).json()
        assert named == {"missing": [{"path": "b.bin", "offset": 0}], "refused": []}
        # One that was changed in the folder meanwhile is.
        named = carl.name(facts("a.bin", b"aa", modified_at=TIME + 1)).json()
        assert [item["path"] for item in named["missing"]] == ["a.bin"]

    def test_that_are_no_longer_named_do_not_come_back(self, carl: Uploader) -> None:
        carl.put("old.bin", b"old")
        carl.begin()
        carl.put("new.bin", b"new")
        assert carl.finish(1).status_code == 200
        assert paths() == ["new.bin"]

    def test_of_the_last_version_are_kept(self, carl: Uploader) -> None:
        for name in ("a.bin", "b.bin"):
            carl.put(name, b"content", f"?modified_at={TIME}")
        carl.finish()
        assert carl.begin().json()["version"] == 2
        named = carl.name(facts("a.bin", b"content"), facts("c.bin", b"content"), facts("b.bin", b"changed!"))
        assert [item["path"] for item in named.json()["missing"]] == ["c.bin", "b.bin"]
        # Whoever knows the hash need not send what the workspace has.
        named = carl.name(facts("c.bin", b"content", sha256=sha256(b"content")))
        assert named.json()["missing"] == []
        carl.finish(2)
        differences = carl.api.get(f"{API}versions/2/differences/").json()
        assert [file["path"] for file in differences["added"]["first"]] == ["c.bin"]
        assert [file["path"] for file in differences["removed"]["first"]] == ["b.bin"]
        assert DatasetFile.objects.count() == 1

    def test_of_other_workspaces_are_not_known_by_their_hash(self, carl: Uploader) -> None:
        with BlobWriter() as writer:
            writer.write(b"secret")
            writer.finish()
        named = carl.name(facts("a.bin", b"secret", sha256=sha256(b"secret"))).json()
        assert [item["path"] for item in named["missing"]] == ["a.bin"]

    def test_that_are_large_come_in_pieces(self, carl: Uploader) -> None:
        data = os.urandom(1000)
        query = f"?modified_at={TIME}"
        answer = carl.put("large", data[:600], query, **{"Content-Range": "bytes 0-599/1000"})
        assert (answer.headers["Upload-Offset"], answer.headers["Upload-Complete"]) == ("600", "false")
        assert carl.name(facts("large", data)).json()["missing"] == [{"path": "large", "offset": 600}]
        wrong = carl.put("large", data[:600], query, **{"Content-Range": "bytes 0-599/1000"})
        assert (wrong.status_code, wrong.headers["Upload-Offset"]) == (409, "600")
        answer = carl.put("large", data[600:], query, **{"Content-Range": "bytes 600-999/1000"})
        assert answer.headers["Upload-Complete"] == "true"
        carl.finish(1)
        assert blobs.path(sha256(data)).read_bytes() == data


class TestRefused:
    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("../a", "'..'"),
            ("/a", "begin without '/'"),
            ("a//b", "empty"),
            ("a/", "empty"),
            ("a\nb", "line break"),
            ("x" * 256, "longer than 255 bytes"),
            ("/".join(["x" * 200] * 6), "1,024 bytes"),
        ],
    )
    def test_are_paths_that_no_disk_can_have(self, carl: Uploader, path: str, words: str) -> None:
        refused = carl.name(facts(path, b"x"), facts("fine", b"x")).json()
        assert words in refused["refused"][0]["reason"]
        assert [item["path"] for item in refused["missing"]] == ["fine"]

    def test_is_a_wrong_time(self, carl: Uploader) -> None:
        for time in ("nan", "-1", "1e300", "yesterday"):
            assert "seconds since 1970" in carl.put("a", b"x", f"?modified_at={time}").json()["detail"]

    def test_is_a_file_that_was_changed_while_it_was_sent(self, carl: Uploader) -> None:
        answer = carl.put("a.bin", b"shorter", "?size=100")
        assert answer.status_code == 409
        assert "a.bin has 7 bytes, and 100 were expected" in answer.json()["detail"]
        assert not UploadedFile.objects.exists()

    def test_are_a_file_and_a_folder_of_one_name(self, carl: Uploader) -> None:
        carl.put("a", b"x")
        carl.put("a/b", b"x")
        answer = carl.finish()
        assert answer.status_code == 400
        assert "both a file a and files below a/" in answer.json()["detail"]

    def test_is_an_end_before_all_is_there(self, carl: Uploader) -> None:
        assert "no file of this upload" in carl.finish().json()["detail"]
        carl.put("a.bin", b"x")
        assert "has 1 files, and 2 were expected" in carl.finish(2).json()["detail"]

    def test_is_too_much(self, carl: Uploader, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        settings.MAX_UPLOAD_BYTES = 10
        refused = carl.name(facts("large", b"x" * 11)).json()["refused"]
        assert "more than 10 B (MAX_UPLOAD_BYTES): keep larger data in a bucket" in refused[0]["reason"]
        assert carl.put("large", b"x" * 11).status_code == 400
        monkeypatch.setattr(file_rules, "MAX_FILES", 1)
        carl.put("a.bin", b"x")
        answer = carl.put("b.bin", b"x")
        assert (answer.status_code, "at most 1 files" in answer.json()["detail"]) == (400, True)
        monkeypatch.setattr(file_rules, "MAX_FILES", 10)
        monkeypatch.setattr(file_rules, "MAX_BYTES", 5)
        assert "at most 5 B" in carl.put("b.bin", b"x" * 5).json()["detail"]

    def test_is_more_than_the_quota(self, carl: Uploader) -> None:
        workspace = Datastore.objects.get().workspace
        Quota.objects.create(workspace=workspace, scope="workspace", disk_gib=1 / 2**20)
        assert carl.put("a.bin", b"x" * 500).status_code == 204
        disk_use.measure_disk(workspace)
        answer = carl.put("b.bin", b"x" * 600)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (403, "file")

    def test_is_whoever_may_not(self, carl: Uploader) -> None:
        victor = Uploader(make_viewer())
        assert victor.put("a.bin", b"x").status_code == 403
        assert victor.begin().status_code == 403
        workspace = make_workspace("other")
        stranger = Uploader(make_person("stranger", Role.OWNER, workspace), workspace)
        assert stranger.put("a.bin", b"x").status_code == 404

    def test_is_somebody_else_meanwhile(self, carl: Uploader) -> None:
        olivia = Uploader(make_owner())
        for answer in (olivia.begin(), olivia.put("a.bin", b"x"), olivia.finish()):
            assert answer.status_code in (400, 409)
            assert "carl uploads birds 1 since" in answer.json()["detail"]
        assert olivia.api.delete(olivia.address).status_code == 204
        assert carl.put("a.bin", b"x").status_code == 404
        assert olivia.begin().json()["version"] == 1

    def test_is_a_dataset_of_a_store(self, carl: Uploader) -> None:
        Datastore.objects.update(kind="s3", settings={"bucket": "team"})
        DatasetVersion.objects.all().delete()
        assert "the files lie in the datastore here" in carl.begin().json()["detail"]

    def test_are_a_path_and_a_refresh(self, carl: Uploader) -> None:
        body = {"name": "fish", "datastore": "here", "path": "2024"}
        answer = carl.api.post("/api/v1/datasets/", body, "application/json")
        assert answer.json()["errors"][0]["field"] == "path"
        assert "upload the folder again" in carl.api.post(f"{API}refresh/").json()["detail"]

    def test_is_a_file_after_the_end(self, carl: Uploader) -> None:
        carl.put("a.bin", b"x")
        carl.finish()
        answer = carl.put("b.bin", b"x")
        assert (answer.status_code, "is ready: begin another upload" in answer.json()["detail"]) == (
            409,
            True,
        )
        assert carl.name(facts("b.bin", b"x")).status_code == 400


def stored_files() -> set[Path]:
    """Other tests of this process leave theirs."""
    return {file for file in (Path(django_settings.DATA_DIR) / "blobs").rglob("*") if file.is_file()}


class TestWhatRemains:
    def test_of_a_deleted_dataset_is_collected(self, carl: Uploader) -> None:
        carl.put("a.bin", b"kept for a while")
        carl.finish()
        later = timezone.now().timestamp() + blob_gc.KEEP_UNNAMED_S + 60
        blob_gc.sweep(later)
        assert blobs.exists(sha256(b"kept for a while"))
        assert carl.api.delete(API).status_code == 204
        blob_gc.sweep(later)
        assert not blobs.exists(sha256(b"kept for a while"))

    def test_of_an_upload_is_named_while_it_waits_and_goes_when_nobody_comes_back(
        self, carl: Uploader
    ) -> None:
        carl.put("a.bin", b"unfinished")
        later = timezone.now() + timedelta(days=sessions.KEEP_DAYS)
        blob_gc.sweep(later.timestamp() + 60)
        assert blobs.exists(sha256(b"unfinished"))
        assert sessions.expire_uploads(later - timedelta(minutes=1)) == 0
        assert sessions.expire_uploads(later + timedelta(minutes=1)) == 1
        blob_gc.sweep(later.timestamp() + 60)
        assert not blobs.exists(sha256(b"unfinished"))
        assert Dataset.objects.get().versions.count() == 0

    def test_of_a_request_that_is_refused_is_nothing(self, carl: Uploader) -> None:
        before = stored_files()
        carl.put("a.bin", b"x" * 100, "?size=1")
        assert stored_files() == before
