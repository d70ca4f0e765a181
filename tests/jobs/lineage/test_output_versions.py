"""Versions of datasets that are made from the outputs of runs."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from clusters.models import Quota
from datastores import changes
from datastores.datasets import file_list
from datastores.models import Dataset, DatasetFile, DatasetVersion, Datastore
from datastores.uploads import file_rules
from jobs.models import DatasetOrigin, Run
from jobs.quotas import disk_use
from jobs.states import RunState
from tests.datastores.datasets.builders import dataset
from tests.datastores.test_datastores import able
from tests.jobs.builders import launched
from tests.jobs.lineage.conftest import derive
from tests.jobs.stored_outputs.builders import add_outputs
from tests.people import (
    api_client,
    make_owner,
    make_person,
    make_viewer,
    make_workspace,
    principal_of,
    token_of,
)
from tests.registry.builders import add_output, run_with
from trainhub_launch.machine import DATASETS, DOWNLOADS, HUB_DATA
from workspaces.models import AuditEvent, User
from workspaces.states import Role
from workspaces.stored_files import blobs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


def paths(version: DatasetVersion) -> list[str]:
    return [file.path for file in file_list.read_page(version, 0, 100)]


class TestMade:
    def test_from_a_folder_share_its_contents_and_name_the_run(self, api: Client, run: Run) -> None:
        answer = derive(api, run, path="outputs/features/")
        assert answer.status_code == 201
        assert (answer.json()["version"], answer.json()["state"], answer.json()["files"]) == (1, "ready", 2)
        version = DatasetVersion.objects.get()
        assert paths(version) == ["2024/a.npy", "b.npy"]
        assert version.dataset.datastore.kind == "hub"
        contents = set(DatasetFile.objects.values_list("sha256", flat=True))
        assert contents == set(
            run.artifacts.filter(path__startswith="features/").values_list("sha256", flat=True)
        )
        origin = {
            "dataset": "features",
            "version": 1,
            "run": run.pk,
            "run_number": 41,
            "attempt": 1,
            "path": "features",
        }
        assert api.get(f"/api/v1/runs/{run.pk}/datasets/").json() == [origin]
        lineage = api.get("/api/v1/datasets/features/versions/1/lineage/").json()
        assert lineage == {"origin": origin, "runs": []}
        event = AuditEvent.objects.get(verb="dataset.derive")
        assert (event.subject, event.detail) == ("features 1", {"run": run.pk, "path": "features"})

    @pytest.mark.parametrize(
        ("path", "files"),
        [
            ("", ["features/2024/a.npy", "features/b.npy", "features.txt", "model.pt"]),
            ("outputs", ["features/2024/a.npy", "features/b.npy", "features.txt", "model.pt"]),
            ("features/2024", ["a.npy"]),
            ("features/2024/a.npy", ["a.npy"]),
            ("outputs/model.pt", ["model.pt"]),
        ],
    )
    def test_from_what_is_named(self, api: Client, run: Run, path: str, files: list[str]) -> None:
        assert derive(api, run, path=path).status_code == 201
        assert sorted(paths(DatasetVersion.objects.get())) == sorted(files)

    def test_from_a_folder_that_the_script_called_outputs(self, api: Client, run: Run) -> None:
        add_output(run, "outputs/own.bin")
        assert derive(api, run, path="outputs").status_code == 201
        assert paths(DatasetVersion.objects.get()) == ["own.bin"]

    def test_as_the_next_version_with_its_differences(self, api: Client, run: Run) -> None:
        derive(api, run, path="features")
        second = run_with("features/b.npy", "features/c.npy", number=42)
        Run.objects.filter(pk=second.pk).update(state=RunState.FAILED)
        assert derive(api, second, path="features").json()["version"] == 2
        changes = api.get("/api/v1/datasets/features/versions/2/differences/").json()
        assert [changes[word]["files"] for word in ("added", "removed")] == [1, 1]

    def test_from_one_attempt_or_the_latest_file_of_each_path(self, api: Client, run: Run) -> None:
        add_output(run, "model.pt", attempt=2, content=b"better")
        Run.objects.filter(pk=run.pk).update(attempt=2)
        derive(api, run, "all")
        derive(api, run, "first", attempt=1)
        sizes = [
            {file.path: file.size for file in file_list.read_page(version, 0, 9)}["model.pt"]
            for version in DatasetVersion.objects.order_by("pk")
        ]
        assert sizes == [len("better"), len("model.pt")]
        assert [*DatasetOrigin.objects.order_by("pk").values_list("attempt", flat=True)] == [2, 1]
        assert derive(api, run, "none", attempt=3).json()["errors"][0]["field"] == "attempt"

    def test_in_the_datastore_that_is_named(self, api: Client, run: Run) -> None:
        for name in ("first", "second"):
            api.post("/api/v1/datastores/", {"name": name, "kind": "hub"}, "application/json")
        derive(api, run, datastore="second")
        assert Dataset.objects.get().datastore.name == "second"
        assert derive(api, run).json()["version"] == 2
        wrong = derive(api, run, datastore="first").json()
        assert "features belongs to the datastore second: leave it out" in wrong["detail"]

    def test_are_read_by_runs_whose_page_leads_on(self, carl: User, api: Client, run: Run) -> None:
        derive(api, run, path="features")
        alpha = able("alpha", DOWNLOADS, DATASETS, HUB_DATA)
        reader = launched(principal_of(carl), inputs={"train": {"dataset": "features"}})
        download = alpha.claim(reader).downloads["train"]
        assert download.manifest == DatasetVersion.objects.get().manifest.sha256
        (shown,) = api.get("/api/v1/datasets/features/versions/1/lineage/").json()["runs"]
        assert (shown["id"], shown["number"]) == (reader.pk, reader.number)


class TestRefused:
    @pytest.mark.parametrize(
        ("fields", "field", "words"),
        [
            (
                {"path": "feature"},
                "path",
                "'feature' is not among the outputs of run 41; there are: features.txt, ",
            ),
            ({"path": "../logs"}, "path", "is not among the outputs of run 41"),
            ({"path": "FEATURES"}, "path", "is not among the outputs of run 41"),
            ({"name": "a b"}, "name", "must have 1 to 100 letters"),
            ({"name": ""}, "name", "blank"),
            ({"name": "x" * 101}, "name", "100"),
            (
                {"name": "birds"},
                "name",
                "of birds the files lie in the datastore bucket: write new ones there",
            ),
            (
                {"datastore": "bucket"},
                "datastore",
                "no datastore 'bucket' whose files the hub keeps; there are: none",
            ),
            ({"datastore": "gone"}, "datastore", "no datastore 'gone' whose files the hub keeps"),
            ({"attempt": 2}, "attempt", "run 41 has 1 attempts"),
            ({"attempt": -1}, "attempt", "0"),
        ],
    )
    def test_is_a_wrong_field(
        self, api: Client, run: Run, fields: dict[str, Any], field: str, words: str
    ) -> None:
        dataset(run.workspace)
        answer = derive(api, run, **fields)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, field)
        assert words in answer.json()["detail"]
        assert not DatasetVersion.objects.exists()

    @pytest.mark.parametrize("state", [RunState.RUNNING, RunState.FINALIZING, RunState.QUEUED])
    def test_is_a_run_that_is_not_over(self, api: Client, run: Run, state: RunState) -> None:
        Run.objects.filter(pk=run.pk).update(state=state)
        answer = derive(api, run)
        assert answer.status_code == 400
        assert f"run 41 is {state}: wait until it has ended" in answer.json()["detail"]

    def test_is_a_run_without_outputs(self, api: Client, run: Run) -> None:
        run.artifacts.all().delete()
        answer = derive(api, run, path="features")
        assert (answer.status_code, "run 41 has no outputs" in answer.json()["detail"]) == (400, True)

    def test_are_too_many_files_or_bytes(
        self, api: Client, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(file_rules, "MAX_FILES", 3)
        assert (
            "run 41 has 4 files there: a version on the hub has at most 3"
            in derive(api, run).json()["detail"]
        )
        monkeypatch.setattr(file_rules, "MAX_FILES", 10)
        monkeypatch.setattr(file_rules, "MAX_BYTES", 5)
        assert "has at most 5 B" in derive(api, run).json()["detail"]

    def test_is_what_no_disk_can_have(self, api: Client, run: Run) -> None:
        add_output(run, "model.pt/part", attempt=0)
        answer = derive(api, run)
        assert answer.status_code == 400
        assert "run 41 has both a file model.pt and files below model.pt/" in answer.json()["detail"]
        add_output(run, "odd/a\nb")
        assert "has control characters" in derive(api, run, path="odd").json()["detail"]

    def test_are_outputs_in_a_datastore(self, carl: User, api: Client, run: Run) -> None:
        """Those on the hub beside them would be only a part of what was chosen."""
        place = {"bucket": "all", "sign_in": "node"}
        bucket = changes.create(principal_of(carl), "bucket", "s3", place)
        add_outputs(run, bucket, {"features/large.npy": b"1"})
        answer = derive(api, run, path="features")
        assert answer.status_code == 400
        (problem,) = answer.json()["errors"]
        assert problem["field"] == "path"
        assert (
            "features/large.npy lies in a datastore, at s3://all/run-41/1/features/large.npy"
            in (problem["message"])
        )
        assert derive(api, run, path="model.pt").status_code == 201

    def test_is_a_file_whose_bytes_are_gone(self, api: Client, run: Run) -> None:
        blobs.path(run.artifacts.get(path="model.pt").sha256).unlink()
        answer = derive(api, run, path="model.pt")
        assert "the bytes of model.pt are missing on the hub" in answer.json()["detail"]

    def test_is_a_dataset_into_which_somebody_uploads(self, api: Client, run: Run) -> None:
        olivia = api_client(make_owner())
        olivia.post("/api/v1/datastores/", {"name": "here", "kind": "hub"}, "application/json")
        body = {"name": "features", "datastore": "here"}
        olivia.post("/api/v1/datasets/", body, "application/json")
        answer = derive(api, run)
        assert answer.status_code == 400
        assert "olivia uploads features 1 since" in answer.json()["detail"]
        olivia.delete("/api/v1/datasets/features/versions/1/upload/")
        assert derive(api, run).json()["version"] == 1

    def test_is_more_once_the_quota_is_used_up(self, api: Client, run: Run) -> None:
        quota = Quota.objects.create(workspace=run.workspace, scope="workspace", disk_gib=10 / 2**30)
        disk_use.measure_disk(run.workspace)
        answer = derive(api, run)
        assert (answer.status_code, "its quota of disk is 10 B" in answer.json()["detail"]) == (400, True)
        Quota.objects.filter(pk=quota.pk).update(disk_gib=1)
        before = disk_use.disk_bytes(run.workspace)[run.workspace.pk, None]
        assert derive(api, run).status_code == 201
        disk_use.measure_disk(run.workspace)
        listed = DatasetVersion.objects.get().manifest.size_bytes
        assert disk_use.disk_bytes(run.workspace)[run.workspace.pk, None] == before + listed

    def test_is_whoever_may_not(self, run: Run) -> None:
        assert derive(api_client(make_viewer()), run).status_code == 403
        other = make_workspace("other")
        token = token_of(make_person("otto", Role.OWNER, other), other)
        stranger = Client(headers={"authorization": f"Bearer {token}"})
        assert derive(stranger, run).status_code == 404
        assert not Datastore.objects.exists()
