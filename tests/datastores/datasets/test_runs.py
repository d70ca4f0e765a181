"""Runs that read versions of datasets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from datastores.models import Dataset
from jobs.models import DatasetUse
from jobs.scheduling.submission import clone_spec, submit
from registry import registration
from tests.datastores.datasets.builders import dataset, ready
from tests.datastores.test_datastores import able
from tests.jobs.builders import launched, spec
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_person,
    make_stranger,
    make_workspace,
    principal_of,
)
from tests.registry.builders import add_output
from tracking.dataset_inputs import CONTEXT
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import DATASETS, DOWNLOADS
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db
BIRDS: dict[str, Any] = {"birds": {"dataset": "birds"}}


@pytest.fixture
def who() -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def birds(who: Principal) -> Dataset:
    made = dataset(who.workspace)
    ready(made, "a.bin", "b.bin")
    ready(made, "a.bin", "c.bin")
    return made


class TestSubmitted:
    def test_get_the_newest_version_and_keep_it(self, who: Principal, birds: Dataset) -> None:
        alpha = able("alpha", DOWNLOADS, DATASETS)
        run = launched(who, inputs=BIRDS)
        assert run.spec["inputs"]["birds"] == {"dataset": "birds", "version": 2, "mode": "download"}
        ready(birds, "d.bin")
        assert clone_spec(run).inputs["birds"].version == 2
        newest = birds.versions.get(number=2)
        download = alpha.claim(run).downloads["birds"]
        assert (download.path, download.manifest, download.is_file) == ("2024", newest.manifest.sha256, False)
        assert DatasetUse.objects.get(run=run).version == newest

    def test_get_the_version_that_they_name(self, who: Principal, birds: Dataset) -> None:
        run = launched(who, inputs={"birds": {"dataset": "birds", "version": 1}})
        assert DatasetUse.objects.get(run=run).version.number == 1

    def test_again_with_the_same_key_are_the_same_run(self, who: Principal, birds: Dataset) -> None:
        able("alpha", DOWNLOADS, DATASETS)
        asked = spec(who, inputs=BIRDS)
        first = submit(asked, who, idempotency_key="once")
        ready(birds, "later.bin")
        assert submit(asked, who, idempotency_key="once") == first
        with pytest.raises(SpecError, match="with another spec"):
            submit(
                spec(who, inputs={"birds": {"dataset": "birds", "version": 3}}), who, idempotency_key="once"
            )

    def test_note_one_that_two_inputs_name_once(self, who: Principal, birds: Dataset) -> None:
        run = launched(
            who, inputs={"train": {"dataset": "birds"}, "test": {"dataset": "birds", "version": 2}}
        )
        assert DatasetUse.objects.filter(run=run).count() == 1

    def test_wait_for_a_node_that_knows_datasets(self, who: Principal, birds: Dataset) -> None:
        able("alpha", DOWNLOADS)
        run = launched(who, inputs=BIRDS)
        assert (
            "alpha does not know versions of datasets: upgrade its agent" in run.events.latest("pk").message
        )

    @pytest.mark.parametrize(
        ("changed", "field", "words"),
        [
            (
                {"dataset": "fish"},
                "inputs.birds.dataset",
                "there is no dataset 'fish' in Default; there are: birds, new",
            ),
            (
                {"version": 7},
                "inputs.birds.version",
                "the hub has no list of version 7 of birds; those with a list are: 2, 1",
            ),
            (
                {"dataset": "new"},
                "inputs.birds.version",
                "no list of any version of new; those with a list are: none yet",
            ),
            ({"mode": "mount"}, "inputs.birds.mode", "leave mode out"),
        ],
    )
    def test_with_a_wrong_one_are_refused_at_its_field(
        self, who: Principal, birds: Dataset, changed: dict[str, Any], field: str, words: str
    ) -> None:
        dataset(who.workspace, "new").versions.create(number=1)
        with pytest.raises(SpecError) as raised:
            launched(who, inputs={"birds": {**BIRDS["birds"], **changed}})
        assert raised.value.field == field
        assert words in raised.value.message


class TestDeletion:
    def test_is_refused_while_a_run_names_it(self, who: Principal, birds: Dataset) -> None:
        run = launched(who, inputs=BIRDS)
        api = api_client(who.user)
        answer = api.delete("/api/v1/datasets/birds/")
        assert answer.status_code == 400
        assert f"birds is what run {run.number} learned from" in answer.json()["detail"]
        answer = api.delete("/api/v1/datastores/bucket/")
        assert "bucket has the files of the dataset birds; delete that first" in answer.json()["detail"]
        run.delete()
        assert api.delete("/api/v1/datasets/birds/").status_code == 204
        assert api.delete("/api/v1/datastores/bucket/").status_code == 204


class TestApi:
    def test_shows_versions_files_and_differences(self, who: Principal, birds: Dataset) -> None:
        api = api_client(who.user)
        shown = api.get("/api/v1/datasets/birds/").json()
        assert (shown["datastore"], shown["path"]) == ("bucket", "2024")
        assert [version["version"] for version in shown["versions"]] == [2, 1]
        birds.versions.create(number=3)
        (listed,) = api.get("/api/v1/datasets/").json()
        assert (listed["name"], listed["newest"]["version"], "versions" in listed) == ("birds", 2, False)
        second = api.get("/api/v1/datasets/birds/versions/2/").json()
        assert (second["state"], second["files"], second["bytes"]) == ("ready", 2, 20)
        page = api.get("/api/v1/datasets/birds/versions/2/files/?start=1&count=5").json()
        assert (page["count"], [file["path"] for file in page["files"]]) == (2, ["c.bin"])
        assert page["files"][0]["modified_at"] == "2026-09-21T14:13:20Z"
        changes = api.get("/api/v1/datasets/birds/versions/2/differences/").json()
        assert (changes["since"], changes["added"]["files"], changes["removed"]["first"][0]["path"]) == (
            1,
            1,
            "b.bin",
        )
        same = api.get("/api/v1/datasets/birds/versions/1/differences/?since=1").json()
        assert same["added"]["files"] == same["changed"]["files"] == 0

    @pytest.mark.parametrize(
        ("path", "status"),
        [
            ("versions/2/files/?start=-1", 400),
            ("versions/2/files/?count=1001", 400),
            ("versions/2/files/?count=x", 400),
            ("versions/1/differences/", 400),
            ("versions/9/", 404),
            (f"versions/{10**30}/", 404),
            ("versions/2/differences/?since=9", 404),
        ],
    )
    def test_refuses_what_is_not_there(self, who: Principal, birds: Dataset, path: str, status: int) -> None:
        assert api_client(who.user).get(f"/api/v1/datasets/birds/{path}").status_code == status

    def test_refuses_files_while_there_is_no_list(self, who: Principal) -> None:
        dataset(who.workspace).versions.create(number=1)
        answer = api_client(who.user).get("/api/v1/datasets/birds/versions/1/files/")
        assert answer.json()["detail"] == "version: birds 1 has no list of its files: it is listing"

    @pytest.mark.parametrize(
        ("body", "field", "words"),
        [
            ({"name": "a b"}, "name", "must have 1 to 100"),
            ({"name": "birds"}, "name", "there is a dataset birds already; refresh it"),
            ({"datastore": "gone"}, "datastore", "there is no datastore 'gone'; there are: bucket"),
            ({"path": "a/../b"}, "path", "without '..'"),
        ],
    )
    def test_refuses_a_wrong_one_at_its_field(
        self, who: Principal, birds: Dataset, body: dict[str, str], field: str, words: str
    ) -> None:
        good = {"name": "fish", "datastore": "bucket"}
        answer = api_client(who.user).post("/api/v1/datasets/", {**good, **body}, "application/json")
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["field"] == field
        assert words in answer.json()["detail"]

    def test_makes_refreshes_and_describes(self, who: Principal, birds: Dataset) -> None:
        api = api_client(who.user)
        body = {"name": "fish", "datastore": "bucket", "path": "/fish/", "description": "All of them."}
        made = api.post("/api/v1/datasets/", body, "application/json")
        assert made.status_code == 201
        assert (made.json()["version"], made.json()["state"]) == (1, "listing")
        again = api.post("/api/v1/datasets/fish/refresh/")
        assert (again.status_code, again.json()["version"]) == (202, 1), "it is being listed"
        assert api.post("/api/v1/datasets/birds/refresh/").json()["version"] == 3
        changed = api.patch("/api/v1/datasets/fish/", {"description": "Some."}, "application/json").json()
        assert (changed["description"], changed["path"]) == ("Some.", "fish")


class TestPages:
    def page(self, client: Client, path: str) -> str:
        answer = client.get(path)
        assert answer.status_code == 200, path
        return " ".join(answer.content.decode().split())

    def test_show_files_differences_and_runs(self, who: Principal, birds: Dataset) -> None:
        run = launched(who, inputs=BIRDS)
        client = client_of(who.user)
        assert 'href="/data/sets/birds/"' in self.page(client, "/data/")
        assert "Version 2" in self.page(client, "/data/sets/birds/")
        version = self.page(client, "/data/sets/birds/2/")
        for text in ("c.bin", "1 file added", "1 file removed", f'href="/runs/{run.number}/"'):
            assert text in version
        assert "birds, version 2" in self.page(client, f"/runs/{run.number}/overview/")
        assert f'href="/runs/{run.number}/"' not in self.page(client, "/data/sets/birds/1/")

    def test_lead_from_files_to_models_and_back(self, who: Principal, birds: Dataset) -> None:
        run = launched(who, inputs={"train": {"dataset": "birds"}})
        client = client_of(who.user)
        assert "No model of these runs" in self.page(client, "/data/sets/birds/2/models/")
        run.refresh_from_db()
        add_output(run, "model.pt", attempt=run.attempt)
        version = registration.register(who.workspace, "classifier", run, "model.pt", who.user)
        assert 'href="/models/classifier/versions/1/"' in self.page(client, "/data/sets/birds/2/models/")
        assert "classifier" not in self.page(client, "/data/sets/birds/1/models/")
        assert 'href="/data/sets/birds/2/"' in self.page(client, "/models/classifier/versions/1/")
        (data,) = json.loads(version.certificate)["origin"]["run"]["inputs"]
        manifest = birds.versions.get(number=2).manifest
        assert (data["name"], data["digest"], data["tags"]) == ("birds", manifest.sha256, {CONTEXT: "train"})

    def test_of_runs_can_be_searched_by_dataset(self, who: Principal, birds: Dataset) -> None:
        run = launched(who, inputs=BIRDS)
        launched(who)
        page = self.page(client_of(who.user), "/runs/?filter=dataset.name+%3D+'birds'")
        assert f'href="/runs/{run.number}/"' in page
        assert f'href="/runs/{run.number + 1}/"' not in page

    def test_go_through_many_files(self, who: Principal) -> None:
        ready(dataset(who.workspace), *(f"{number:04d}.bin" for number in range(250)))
        client = client_of(who.user)
        assert "201–250 of 250" in self.page(client, "/data/sets/birds/1/?page=3")
        for page in ("4", "0", "x", "9" * 30):
            assert client.get(f"/data/sets/birds/1/?page={page}").status_code == 404

    def test_make_refresh_and_delete(self, who: Principal, birds: Dataset) -> None:
        client = client_of(who.user)
        fields = {"name": "fish", "datastore": "bucket", "path": "fish", "description": ""}
        assert client.post("/data/sets/new/", fields)["Location"] == "/data/sets/fish/"
        wrong = client.post("/data/sets/new/", {**fields, "name": "birds"})
        assert wrong.status_code == 400
        assert "There is a dataset birds already" in wrong.content.decode()
        assert client.post("/data/sets/birds/refresh/")["Location"] == "/data/sets/birds/3/"
        assert client.post("/data/sets/fish/delete/")["Location"] == "/data/"

    def test_are_not_those_of_another_workspace(self, birds: Dataset) -> None:
        stranger = client_of(make_stranger())
        other = make_person("otto", Role.CONTRIBUTOR, make_workspace("other"))
        for path in ("/data/sets/birds/", "/data/sets/birds/1/"):
            assert stranger.get(path).status_code == 404
            assert client_of(other).get(path).status_code == 404
            assert client_of(other).get("/api/v1/datasets/birds/versions/1/files/").status_code == 404
