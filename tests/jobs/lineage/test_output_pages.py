"""Where a version that was made from outputs of a run is named, and what remains of run and dataset."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import Run
from jobs.retention.run_purge import purge_due, purge_now
from jobs.states import RunState
from tests.jobs.lineage.conftest import derive
from tests.people import client_of, make_viewer
from tests.registry.builders import add_output
from workspaces.models import User
from workspaces.stored_files import blob_gc, blobs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


class TestWhatRemains:
    def test_of_a_purged_run_is_the_dataset_with_its_bytes(self, carl: User, api: Client, run: Run) -> None:
        derive(api, run, path="features")
        sha256 = run.artifacts.get(path="features/b.npy").sha256
        lost = run.artifacts.get(path="model.pt").sha256
        Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now())
        page = client_of(carl).get("/data/sets/features/1/").content.decode()
        assert ("deleted run 41, attempt 1" in page, 'href="/runs/41/' in page) == (True, False)
        purge_now(run, carl)
        assert purge_due(lambda _: None) == 1
        blob_gc.sweep(timezone.now().timestamp() + blob_gc.KEEP_UNNAMED_S + 60)
        assert (blobs.exists(sha256), blobs.exists(lost)) == (True, False)
        origin = api.get("/api/v1/datasets/features/versions/1/lineage/").json()["origin"]
        assert (origin["run"], origin["run_number"]) == (None, 41)
        assert "deleted run 41, attempt 1" in client_of(carl).get("/data/sets/features/1/").content.decode()

    def test_of_a_deleted_dataset_are_the_outputs(self, api: Client, run: Run) -> None:
        derive(api, run, path="features")
        assert api.delete("/api/v1/datasets/features/").status_code == 204
        blob_gc.sweep(timezone.now().timestamp() + blob_gc.KEEP_UNNAMED_S + 60)
        assert all(blobs.exists(artifact.sha256) for artifact in run.artifacts.all())
        assert api.get(f"/api/v1/runs/{run.pk}/datasets/").json() == []


class TestPages:
    def test_lead_from_the_run_to_the_version_and_back(self, carl: User, run: Run) -> None:
        client = client_of(carl)
        folder = client.get("/runs/41/outputs/?path=features").content.decode()
        assert 'href="/data/outputs/?run=41&amp;path=features"' in folder
        form = client.get("/data/outputs/?run=41&path=features").content.decode()
        assert ('value="41"' in form, 'value="features"' in form) == (True, True)
        fields = {"run": 41, "path": "features", "name": "features"}
        assert client.post("/data/outputs/", fields)["Location"] == "/data/sets/features/1/"
        version = " ".join(client.get("/data/sets/features/1/").content.decode().split())
        for text in (
            'href="/runs/41/outputs/"',
            ">run 41</a>, attempt 1:",
            '<code class="en-break">features</code>',
        ):
            assert text in version
        for tab in ("outputs", "overview"):
            page = " ".join(client.get(f"/runs/41/{tab}/").content.decode().split())
            assert "features, version 1" in page
            assert 'href="/data/sets/features/1/"' in page

    def test_show_a_refusal_at_its_field(self, carl: User, run: Run) -> None:
        client = client_of(carl)
        for fields, words in (
            ({"run": 99}, "There is no such run in this workspace."),
            ({"run": "x"}, "Enter a whole number."),
            ({"path": "gone"}, "&#x27;gone&#x27; is not among the outputs"),
            ({"attempt": 7}, "Run 41 has 1 attempts"),
        ):
            answer = client.post("/data/outputs/", {"run": 41, "name": "features", **fields})
            assert (answer.status_code, words in answer.content.decode()) == (400, True), words
        add_output(run, "model.pt/part", attempt=0)
        answer = client.post("/data/outputs/", {"run": 41, "name": "features"})
        assert "Run 41 has both a file model.pt" in answer.content.decode()

    def test_offer_nothing_while_the_run_goes_on_or_to_viewers(self, carl: User, run: Run) -> None:
        assert "Make a dataset" not in client_of(make_viewer()).get("/runs/41/outputs/").content.decode()
        Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
        assert "Make a dataset" not in client_of(carl).get("/runs/41/outputs/").content.decode()
