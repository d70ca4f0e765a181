"""Outputs on the hub and in a datastore, as one list."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from datastores.models import Datastore
from jobs import outputs
from jobs.models import Artifact, OutputFolder, Run, StoredOutput
from jobs.retention.purge_registry import RUN_TABLES
from tests.jobs.stored_outputs.builders import add_outputs
from tests.people import api_client, client_of, make_viewer, make_workspace
from tests.registry.builders import add_output, run_with
from tracking.artifacts.file_owners import RunFiles
from tracking.artifacts.folders import list_folder
from workspaces.stored_files import blob_names

pytestmark = pytest.mark.django_db


@pytest.fixture
def datastore() -> Datastore:
    settings = {"bucket": "birds"}
    return Datastore.objects.create(workspace=make_workspace(), name="bucket", kind="s3", settings=settings)


def places(run: Run, attempt: int = 0) -> dict[str, str]:
    """Where each path lies: "hub", or the attempt whose file lies in the datastore."""
    return {
        row.path: f"stored {row.folder.attempt}" if isinstance(row, StoredOutput) else f"hub {row.attempt}"
        for row in outputs.all_of(run, attempt)
    }


class TestWhichCounts:
    def test_a_later_attempt_counts_and_of_the_same_one_the_hub(self, datastore: Datastore) -> None:
        run = run_with(attempt=2)
        add_output(run, "early.txt", attempt=1)
        add_output(run, "same.txt", attempt=2)
        add_output(run, "late.txt", attempt=2)
        add_outputs(run, datastore, {"late.txt": b"1", "same.txt": b"1", "old.txt": b"1"}, attempt=1)
        add_outputs(run, datastore, {"early.txt": b"2", "same.txt": b"2", "new.txt": b"2"}, attempt=2)
        assert places(run) == {
            "early.txt": "stored 2",
            "late.txt": "hub 2",
            "new.txt": "stored 2",
            "old.txt": "stored 1",
            "same.txt": "hub 2",
        }
        assert places(run, 1) == {
            "early.txt": "hub 1",
            "late.txt": "stored 1",
            "old.txt": "stored 1",
            "same.txt": "stored 1",
        }

    def test_of_many_attempts_too(self, datastore: Datastore) -> None:
        run = run_with(attempt=9)
        add_output(run, "a.txt", attempt=3)
        add_outputs(run, datastore, {"a.txt": b"", "b.txt": b""}, attempt=2)
        add_outputs(run, datastore, {"b.txt": b""}, attempt=7)
        assert places(run) == {"a.txt": "hub 3", "b.txt": "stored 7"}

    def test_a_run_without_a_datastore_costs_no_query_more(self) -> None:
        run = run_with("a.txt", "b/c.txt")
        with CaptureQueriesContext(
            connection,
        ) as queries:
            listing = list_folder(RunFiles(run), "")
        assert [len(listing.files), len(listing.folders), len(queries)] == [1, 1, 2]


class TestPages:
    def test_the_api_says_where_each_lies(self, datastore: Datastore) -> None:
        run = run_with("a.txt")
        add_outputs(run, datastore, {"m/b.txt": b"bb"})
        answer = api_client(make_viewer()).get(f"/api/v1/runs/{run.pk}/outputs/").json()["outputs"]
        assert [(row["path"], row["place"]) for row in answer] == [
            ("a.txt", ""),
            ("m/b.txt", f"s3://birds/run-{run.number}/1/m/b.txt"),
        ]

    def test_a_folder_has_both_kinds(self, datastore: Datastore) -> None:
        run = run_with("m/a.txt", "z.txt")
        add_outputs(run, datastore, {"m/b.txt": b"bb", "c.txt": b"c"})
        listing = list_folder(RunFiles(run), "")
        assert [(folder.name, folder.files, folder.stored) for folder in listing.folders] == [("m", 2, 1)]
        assert [file.path for file in listing.files] == ["c.txt", "z.txt"]
        assert (listing.count, listing.stored_count, listing.size_bytes) == (4, 2, 7 + 2 + 1 + 5)

    def page(self, run: Run, **query: str) -> str:
        answer = client_of(make_viewer()).get(f"/runs/{run.number}/outputs/", query)
        assert answer.status_code == 200
        return str(answer.content.decode())

    def test_the_tab_names_the_place_and_leaves_it_out_of_zips(self, datastore: Datastore) -> None:
        run = run_with("z.txt")
        add_outputs(run, datastore, {"c.txt": b"c"})
        page = self.page(run)
        assert f"s3://birds/run-{run.number}/1/c.txt" in page
        assert "1 file lies in a datastore" in page
        assert 'aria-label="Select z.txt"' in page
        assert 'aria-label="Select c.txt"' not in page
        assert "size and SHA-256 as reported by the node" in self.page(run, file="c.txt")
        assert "in a datastore" in str(
            client_of(make_viewer()).get(f"/runs/{run.number}/overview/").content.decode()
        )

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            (
                {"kind": "folder", "path": "/mnt/r"},
                "in a folder of the nodes: read it on a node",
            ),
            ({"sign_in": "node"}, "which nodes read with their own role"),
            (None, "its datastore was deleted, so the hub cannot read it any more"),
        ],
    )
    def test_what_the_hub_cannot_read_says_what_to_do(
        self, changes: dict[str, Any] | None, words: str, datastore: Datastore
    ) -> None:
        run = run_with()
        add_outputs(run, datastore, {"c.txt": b"c"})
        if changes is None:
            datastore.delete()
        else:
            Datastore.objects.filter(pk=datastore.pk).update(**changes)
        page = self.page(run, file="c.txt")
        assert words in page
        assert "s3://birds/run-" in page
        assert "/api/v1/artifacts/files/" not in page


def test_no_table_of_outputs_in_a_datastore_names_stored_files(datastore: Datastore) -> None:
    run = run_with()
    (row,) = add_outputs(run, datastore, {"c.txt": b"c"})
    assert StoredOutput not in blob_names.TABLES
    assert not any(table.names_files for table in RUN_TABLES if table.model is StoredOutput)
    assert blob_names.named_in(run.workspace_id, [row.sha256]) == set()


def test_rows_go_with_their_run(datastore: Datastore) -> None:
    run = run_with()
    add_outputs(run, datastore, {"c.txt": b"c"})
    Artifact.objects.filter(run=run).delete()
    run.delete()
    assert not OutputFolder.objects.exists()
    assert not StoredOutput.objects.exists()
