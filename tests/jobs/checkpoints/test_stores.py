"""Checkpoints that lie in a datastore: what is refused, what nodes are told, and what they are to remove."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from clusters.models import Node
from datastores import changes
from datastores.models import Datastore
from jobs.checkpoints import collecting, restoring, stores
from jobs.checkpoints.part_files import CheckpointRefused, DeliveredFile, PartDelivery
from jobs.models import Attempt, Checkpoint, Run, StoredCheckpointFile
from jobs.node_api import run_secrets
from jobs.retention import deletion, run_purge
from jobs.scheduling import run_actions
from jobs.scheduling.run_preview import preview
from tests.datastores.test_datastores import able
from tests.jobs.builders import Played, ended, launched, queued, running, spec
from tests.jobs.checkpoints.saving import RENAMED, announce, part_of, save, states
from tests.people import make_owner, principal_of
from trainhub_launch.data.checkpoint_order import CheckpointOrder, StoredFile
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import CHECKPOINT_STORES, INPUTS
from workspaces.access import Principal
from workspaces.secrets import store

pytestmark = pytest.mark.django_db
CHECKPOINT = {"datastore": "results", "datastore_path": "birds", "keep": 2}
BUCKET = {"bucket": "all", "path": "kept", "access_key_id": "AKIA", "secret": "s3-key"}
VERSION = "c" * 32
DIGEST = hashlib.sha256(b"weights").hexdigest()


@pytest.fixture
def who() -> Principal:
    owner = principal_of(make_owner())
    store.put(owner, "s3-key", "the-secret-part", store.WORKSPACE)
    changes.create(owner, "results", "s3", BUCKET)
    return owner


def saving(who: Principal, **more: Any) -> tuple[Played, Run]:
    """A run on one node whose checkpoints go to the datastore."""
    alpha = able("alpha", CHECKPOINT_STORES)
    run = launched(who, checkpoint=CHECKPOINT, **more)
    alpha.claim(run)
    alpha.tell(run, "running")
    return alpha, run


def end(played: Played, run: Run, code: int = 0) -> None:
    """Ends the attempt; the node then says again what it can do."""
    played.finish(run, ended(0, code))
    able_again = f"{played.node.capabilities} {INPUTS} {CHECKPOINT_STORES}"
    Node.objects.filter(pk=played.node.pk).update(capabilities=able_again)


@pytest.fixture
def commits(django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks) -> Iterator[None]:
    with django_capture_on_commit_callbacks(execute=True):
        yield


def deliver(played: Played, run: Run, number: int, path: str, attempt: int = 1) -> None:
    delivery = PartDelivery([DeliveredFile(path, DIGEST, 7)], version=VERSION)
    collecting.deliver(part_of(played, run, attempt), number, delivery)


class TestOrder:
    def test_names_a_folder_of_the_run_and_no_credentials(self, who: Principal) -> None:
        alpha, run = saving(who)
        order = alpha.claim(run).checkpoint
        assert order is not None
        assert order.store is not None
        assert (order.store.path, order.store.secret_key) == (
            f"kept/birds/{run.pk}/checkpoints",
            "datastore:s3-key",
        )
        assert CheckpointOrder.from_json(order.to_json()) == order
        values = run_secrets.take(alpha.node, run.pk, 1, alpha.nonce)
        assert values == {"datastore:s3-key": "the-secret-part"}

    def test_waits_for_a_node_that_writes_there(self, who: Principal) -> None:
        able("alpha")
        run = launched(who, checkpoint=CHECKPOINT)
        assert "alpha does not write checkpoints into datastores: upgrade its agent" in run.sentence

    def test_keeps_its_datastore_from_being_deleted(self, who: Principal) -> None:
        _, run = saving(who)
        with pytest.raises(Exception, match=f"run {run.number}"):
            changes.delete(who, Datastore.objects.get())

    def test_the_next_attempt_begins_with_what_lies_there(self, who: Principal) -> None:
        alpha, run = saving(who, limits={"retries": 1})
        announce(alpha, run, "last.pt")
        deliver(alpha, run, 1, "last.pt")
        end(alpha, run, 1)
        run_actions.launch(run.pk)
        order = alpha.claim(run, attempt=2).checkpoint
        assert order is not None
        assert order.files == ()
        assert order.source == order.store
        assert order.stored_files == (StoredFile("last.pt", 7, DIGEST, f"1/{VERSION[:16]}/last.pt"),)

    def test_not_if_the_datastore_is_gone(self, who: Principal) -> None:
        alpha, run = saving(who)
        announce(alpha, run, "last.pt")
        deliver(alpha, run, 1, "last.pt")
        alpha.finish(run)
        Datastore.objects.all().delete()
        with pytest.raises(SpecError, match="no datastore 'results'"):
            run_actions.submit(run_actions.resumed_spec(run), who)
        changes.create(who, "others", "s3", BUCKET)
        with pytest.raises(SpecError, match="in a datastore that is not there any more") as error:
            queued(who, checkpoint={"resume_from": run.pk, "datastore": "others"})
        assert error.value.field == "checkpoint.resume_from"


class TestFindings:
    def problems(self, who: Principal, **checkpoint: Any) -> list[tuple[str, str]]:
        found = preview(spec(who, checkpoint=checkpoint), who).findings
        return [(item.level, item.message) for item in found if item.field == "checkpoint.datastore"]

    def test_a_datastore_that_is_not_there(self, who: Principal) -> None:
        ((level, message),) = self.problems(who, datastore="resluts")
        assert level == "error"
        assert "resluts" in message

    def test_a_kind_into_which_nobody_writes(self, who: Principal) -> None:
        changes.create(who, "web", "http", {"url": "https://data.example.org/"})
        ((level, message),) = self.problems(who, datastore="web")
        assert (level, "take outputs and checkpoints" in message) == ("error", True)

    def test_a_signature_that_may_not_delete(self, who: Principal) -> None:
        signature = "sv=2026-01-01&sp=rcwl&se=2099-01-01T00%3A00%3A00Z&sig=abc"
        store.put(who, "sas", signature, store.WORKSPACE)
        place = {"account": "accounts", "container": "results", "secret": "sas"}
        changes.create(who, "container", "azure_blob", place)
        ((level, message),) = self.problems(who, datastore="container")
        assert level == "warning"
        assert "may not delete" in message
        assert "read, list, create, write and delete" in message

    @pytest.mark.parametrize(
        ("checkpoint", "field"),
        [
            ({"datastore": "results", "datastore_path": "a/../b"}, "checkpoint.datastore_path"),
            ({"datastore_path": "birds"}, "checkpoint.datastore"),
        ],
    )
    def test_a_path_that_is_none(self, who: Principal, checkpoint: dict[str, str], field: str) -> None:
        with pytest.raises(SpecError) as error:
            queued(who, checkpoint=checkpoint)
        assert error.value.field == field


class TestKeeping:
    def test_is_complete_with_what_the_node_says(self, who: Principal, commits: None) -> None:
        alpha, run = saving(who)
        assert announce(alpha, run, "last.pt") == {"last.pt": 1}
        deliver(alpha, run, 1, "last.pt")
        row = Checkpoint.objects.get()
        assert (row.state, row.size_bytes, row.file_count) == ("complete", 7, 1)
        assert row.place == f"s3://all/kept/birds/{run.pk}/checkpoints"
        assert not row.files.exists()

    def test_the_quota_of_disk_does_not_count_it(self, who: Principal) -> None:
        """The bytes are not on the hub."""
        alpha, run = saving(who)
        part = part_of(alpha, run)
        entry = collecting.Announced("big", "a1", RENAMED, 2**60)
        assert collecting.announce(part, [entry], None) == {"big": 1}

    def test_a_node_may_send_it_to_the_hub(self, who: Principal) -> None:
        """An agent of an earlier version does."""
        alpha, run = saving(who)
        save(alpha, run, "last.pt")
        assert states(run) == {"last.pt": "complete"}
        assert not StoredCheckpointFile.objects.exists()

    def test_an_attempt_without_a_datastore_stores_none(self, who: Principal) -> None:
        alpha, run = running(who)
        announce(alpha, run, "last.pt")
        with pytest.raises(CheckpointRefused, match="go to the hub"):
            deliver(alpha, run, 1, "last.pt")

    def test_a_node_is_told_what_to_remove_until_it_has(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, run = saving(who)
        for number in range(1, 4):
            with django_capture_on_commit_callbacks(execute=True):
                announce(alpha, run, f"epoch-{number}", version=f"a{number}")
                deliver(alpha, run, number, f"epoch-{number}")
        part = part_of(alpha, run)
        assert states(run) == {"epoch-1": "discarded", "epoch-2": "complete", "epoch-3": "complete"}
        assert [row.name for row in Checkpoint.objects.shown(run)] == ["epoch-2", "epoch-3"]
        assert stores.surplus(part.attempt) == {1: []}
        stores.note_removed(part, [1], "The bucket all does not let these credentials remove 1.")
        assert stores.surplus(part.attempt) == {1: []}
        (warning,) = Attempt.objects.get(run=run).warnings
        assert warning.startswith("Checkpoints that are not kept any more stay in the datastore: The bucket")
        # What is kept is not forgotten, whatever a node says.
        stores.note_removed(part, [1, 2], "")
        assert states(run) == {"epoch-2": "complete", "epoch-3": "complete"}
        assert stores.surplus(part.attempt) == {}

    def test_what_is_left_of_a_torn_one_is_removed_too(self, who: Principal, commits: None) -> None:
        alpha, run = saving(who)
        announce(alpha, run, "last.pt")
        part = part_of(alpha, run)
        collecting.deliver(part, 1, PartDelivery([], torn="it was changed while it was being saved."))
        assert stores.surplus(part.attempt) == {1: []}
        stores.note_removed(part, [1], "")
        assert stores.surplus(part.attempt) == {}
        assert states(run) == {"last.pt": "torn"}

    def test_what_another_run_began_with_stays(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, run = saving(who)
        announce(alpha, run, "epoch-1")
        deliver(alpha, run, 1, "epoch-1")
        resumed = run_actions.submit(run_actions.resumed_spec(run), who, cloned_from=run)
        copy = Checkpoint.objects.get(run=resumed)
        assert (copy.state, copy.file_count) == ("complete", 1)
        for number in (2, 3, 4):
            with django_capture_on_commit_callbacks(execute=True):
                announce(alpha, run, f"epoch-{number}", version=f"b{number}")
                deliver(alpha, run, number, f"epoch-{number}")
        assert states(run)["epoch-1"] == states(run)["epoch-2"] == "discarded"
        assert stores.surplus(part_of(alpha, run).attempt) == {2: []}


class TestOtherRuns:
    def test_one_that_goes_on_writes_where_its_origin_wrote(self, who: Principal) -> None:
        alpha, run = saving(who)
        announce(alpha, run, "last.pt")
        deliver(alpha, run, 1, "last.pt")
        end(alpha, run)
        resumed = queued(who, checkpoint={"resume_from": run.pk})
        assert resumed.spec["checkpoint"]["datastore"] == "results"
        run_actions.launch(resumed.pk)
        order = alpha.claim(resumed).checkpoint
        assert order is not None
        assert order.store is not None
        assert order.source is not None
        assert order.store.path == f"kept/birds/{resumed.pk}/checkpoints"
        assert order.source.path == f"kept/birds/{run.pk}/checkpoints"

    def test_its_copy_stays_when_the_first_is_purged(self, who: Principal) -> None:
        alpha, run = saving(who)
        announce(alpha, run, "last.pt")
        deliver(alpha, run, 1, "last.pt")
        alpha.finish(run)
        resumed = run_actions.submit(run_actions.resumed_spec(run), who, cloned_from=run)
        run.refresh_from_db()
        deletion.delete(run, who.user)
        run_purge.purge_now(run, who.user)
        run_purge.purge_due(lambda _: None)
        newest = restoring.newest(resumed)
        assert newest is not None
        assert [file.path for file in newest.stored_files.all()] == ["last.pt"]
