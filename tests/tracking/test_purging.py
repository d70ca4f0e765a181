"""What a purge takes along, what it leaves, and that it can be broken off anywhere."""

from __future__ import annotations

import hashlib
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.utils import timezone

from clusters.models import AgentRollout, Lease, StoredSeries
from environments.models import LockedFile
from jobs.errors import Conflict
from jobs.logs import log_store
from jobs.models import Artifact, Experiment, Run, RunTag, Snapshot
from jobs.retention import deletion, reclaimable_bytes, run_purge
from jobs.retention.purge_registry import RUN_TABLES
from jobs.scheduling import run_actions
from jobs.wizard import drafts
from registry.models import ModelFile, ModelVersion, RegisteredModel
from tests.jobs.builders import Played, launched, node
from tests.jobs.retention.test_deletion import logged
from tests.people import make_contributor, principal_of
from tracking.logged_model_purge import purge_logged_models
from tracking.metrics.point_writer import Point, append
from tracking.models import (
    LoggedModel,
    LoggedModelFile,
    Metric,
    MetricBlock,
    MetricSlice,
    PanelLayout,
    Param,
    UsageEntry,
)
from tracking.usage import accounting
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.object_store.models import StoredObject
from workspaces.stored_files import blob_gc, blob_names, blobs
from workspaces.stored_files.blob_writer import BlobWriter

pytestmark = pytest.mark.usefixtures("valkey")
LATER = timezone.now() + timedelta(days=31)


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_contributor())


def kept_file(content: bytes) -> str:
    with BlobWriter() as writer:
        writer.write(content)
        return writer.finish()


def rich(who: Principal, content: bytes = b"weights") -> Run:
    """A run that ended and has something in every table that a purge has to think of."""
    alpha = Played(node())
    run = launched(who)
    alpha.claim(run)
    alpha.log(run, "70_driver_log.txt", 0, b"some log")
    alpha.finish(run)
    Artifact.objects.create(
        run=run, attempt=1, path="model.pt", size_bytes=len(content), sha256=kept_file(content)
    )
    append(
        run.pk, run.experiment_id, [Point("loss", 1.0 / (step + 1), step, 1000 + step) for step in range(50)]
    )
    metric = Metric.objects.get(run=run)
    MetricBlock.objects.create(metric=metric, number=0, points=0, data=b"")
    Param.objects.create(run=run, experiment=run.experiment, key="lr", value="0.1")
    RunTag.objects.create(run=run, experiment=run.experiment, key="note", value="x")
    model = LoggedModel.objects.create(experiment=run.experiment, run=run, name="net")
    LoggedModelFile.objects.create(model=model, path="a", size_bytes=3, sha256=kept_file(b"abc"))
    StoredSeries.objects.create(
        holder=run.pk, attempt=1, node_name="alpha", subject="", step_s=10, start=0, data=b""
    )
    run.refresh_from_db()
    return run


def purge(now: Any = LATER) -> int:
    return run_purge.purge_due(accounting.finalize_run, now=now)


class TestPurge:
    def test_takes_all_of_a_run_that_was_deleted_long_enough_ago(self, who: Principal) -> None:
        run = rich(who)
        stored = set(Artifact.objects.values_list("sha256", flat=True)) | {run.spec["source"]["id"]}
        deletion.delete(run, who.user)
        assert purge(timezone.now() + timedelta(days=29)) == 0
        assert purge() == 1
        tables: set[type[models.Model]] = {*_of_runs(), Run, StoredSeries, Snapshot}
        assert {model for model in tables if model._default_manager.exists()} == {UsageEntry}
        assert not log_store.run_folder(run.pk).exists()
        assert not any(blobs.exists(sha256) for sha256 in stored)
        assert purge() == 0

    def test_leaves_the_account_of_what_was_used(self, who: Principal) -> None:
        run = rich(who)
        deletion.delete(run, who.user)
        purge()
        entry = UsageEntry.objects.get()
        assert (entry.run, entry.run_number, entry.is_final) == (None, run.number, True)

    def test_leaves_registered_versions_and_their_files(self, who: Principal) -> None:
        run = rich(who)
        model = RegisteredModel.objects.create(workspace=who.workspace, name="digits")
        version = ModelVersion.objects.create(model=model, number=1, run=run, source_path="model.pt")
        sha256 = Artifact.objects.get().sha256
        ModelFile.objects.create(version=version, path="model.pt", size_bytes=7, sha256=sha256)
        deletion.delete(run, who.user)
        purge()
        version.refresh_from_db()
        assert version.run is None
        assert blobs.exists(sha256)

    def test_leaves_files_and_sources_that_another_run_names(self, who: Principal) -> None:
        run, other = rich(who), rich(who)
        deletion.delete(run, who.user)
        purge()
        assert blobs.exists(Artifact.objects.get(run=other).sha256)
        assert blobs.exists(other.spec["source"]["id"])

    def test_takes_what_is_part_of_it_first(self, who: Principal) -> None:
        run = rich(who)
        logged(who, logged(who, run))
        deletion.delete(run, who.user)
        assert purge() == 3
        assert not Run.objects.exists()

    def test_waits_while_it_holds_a_gpu(self, who: Principal) -> None:
        run = rich(who)
        deletion.delete(run, who.user)
        Lease.objects.update(released_at=None)
        assert purge() == 0
        assert Artifact.objects.exists()

    def test_takes_a_deleted_experiment_with_its_runs_and_what_was_logged_without_one(
        self, who: Principal
    ) -> None:
        run = rich(who)
        alone = LoggedModel.objects.create(experiment=run.experiment, name="alone")
        LoggedModelFile.objects.create(
            model=alone, path="a", size_bytes=5, sha256=(sha256 := kept_file(b"alone"))
        )
        PanelLayout.objects.create(experiment=run.experiment, panels=[{"metrics": ["loss"]}])
        deletion.delete_experiment(run.experiment, who.user)
        assert purge() == 1
        assert not Experiment.objects.exists()
        assert not PanelLayout.objects.exists()
        assert not blobs.exists(sha256)

    @pytest.mark.parametrize("after", range(4))
    def test_goes_on_where_it_was_broken_off(
        self, who: Principal, after: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = rich(who)
        deletion.delete(run, who.user)
        removed: list[type[models.Model]] = []

        def broken(self: models.QuerySet[Any], original: Any = models.QuerySet.delete) -> Any:
            if len(removed) == after:
                raise KeyboardInterrupt
            removed.append(self.model)
            return original(self)

        with monkeypatch.context() as patched:
            patched.setattr(models.QuerySet, "delete", broken)
            with pytest.raises(KeyboardInterrupt):
                purge()
        with pytest.raises(Conflict, match="permanently"):
            deletion.restore(run, who.user)
        assert purge() == 1
        assert not any(model._default_manager.exists() for model in _of_runs() - {UsageEntry})


class TestLoggedModels:
    def test_that_a_client_deleted_go_with_their_files(self, who: Principal) -> None:
        run = rich(who)
        kept = LoggedModel.objects.create(experiment=run.experiment, run=run, name="kept")
        LoggedModelFile.objects.create(model=kept, path="a", size_bytes=4, sha256=kept_file(b"kept"))
        gone = LoggedModel.objects.get(name="net")
        LoggedModel.objects.filter(pk=gone.pk).update(deleted_at=timezone.now())
        purge_logged_models(timezone.now() + timedelta(days=29))
        assert LoggedModel.objects.count() == 2
        purge_logged_models(LATER)
        assert LoggedModel.objects.get() == kept
        assert [
            blobs.exists(sha256) for sha256 in (kept_file(b"kept"), hashlib.sha256(b"abc").hexdigest())
        ] == [True, False]


class TestNow:
    def test_takes_a_deleted_run_at_once_with_its_files(self, who: Principal) -> None:
        run = rich(who)
        sha256 = Artifact.objects.get().sha256
        with pytest.raises(Conflict, match="delete it first"):
            run_purge.purge_now(run, who.user)
        deletion.delete(run, who.user)
        run_purge.purge_now(run, who.user)
        assert purge(timezone.now()) == 1
        assert not Run.objects.exists()
        assert not blobs.exists(sha256)


class TestFreeing:
    def test_says_beforehand_how_many_bytes(self, who: Principal) -> None:
        run, other = rich(who, b"x" * 1000), rich(who, b"y" * 500)
        Artifact.objects.create(
            run=run, attempt=1, path="shared", size_bytes=500, sha256=kept_file(b"y" * 500)
        )
        logs = len(b"some log")
        # Both logged the same model file of 3 bytes, which therefore stays when one of them goes.
        freed = reclaimable_bytes.bytes_by_group({1: {run.pk}, 2: {other.pk}})
        assert freed == {1: 1000 + _stored(run), 2: _stored(other)}
        assert _stored(run) >= logs
        assert reclaimable_bytes.bytes_by_group({1: {run.pk, other.pk}}) == {
            1: 1000 + 500 + 3 + _stored(run) + _stored(other)
        }

    def test_spares_what_somebody_uploads_at_the_moment_and_takes_it_within_hours(self, db: None) -> None:
        sha256 = kept_file(b"uploaded again")
        named_at = time.time() - 600
        assert blob_gc.free({sha256: named_at}) == 0
        assert blob_gc.sweep(time.time() + 1800) == 0
        assert blob_gc.sweep(time.time() + 7200) == 1

    def test_a_file_that_is_held_in_the_last_moment_stays(self, db: None) -> None:
        sha256 = kept_file(b"held")
        os.utime(blobs.path(sha256), (1, 1))
        assert blobs.hold(sha256)
        assert blobs.drop(blobs.path(sha256), unkept_since=1000.0) is None
        assert blobs.exists(sha256)
        assert not blobs.hold("0" * 64)


class TestTables:
    def test_every_table_that_goes_with_a_run_is_purged_in_batches(self) -> None:
        assert {belonging.model for belonging in RUN_TABLES} >= _cascading(Run) - {Run}

    def test_every_table_that_names_a_file_is_asked_before_one_is_freed(self) -> None:
        naming = {
            model
            for model in apps.get_models()
            if any(field.name == "sha256" for field in model._meta.fields)
        }
        # A lock names wheels that may never have been fetched; those that are stored have rows of their own.
        # Which files lie in an object store follows from the others. The program for nodes is packed anew.
        assert naming - {LockedFile, StoredObject, AgentRollout} == set(blob_names.TABLES)


def _stored(run: Run) -> int:
    return sum(
        file.stat().st_size for file in Path(log_store.run_folder(run.pk)).rglob("*") if file.is_file()
    )


def _of_runs() -> set[type[models.Model]]:
    return {belonging.model for belonging in RUN_TABLES} | {UsageEntry, MetricSlice}


def _cascading(model: type[models.Model]) -> set[type[models.Model]]:
    result = {model}
    for relation in model._meta.related_objects:
        if (
            relation.on_delete is models.CASCADE
            and relation.related_model not in result
            and relation.related_model is not model
        ):
            result |= _cascading(relation.related_model)
    return result


class TestSources:
    def test_that_a_draft_names_stay(self, who: Principal) -> None:
        run = rich(who)
        draft = drafts.start(who, run_actions.clone_spec(run))
        deletion.delete(run, who.user)
        purge()
        assert blobs.exists(run.spec["source"]["id"])
        draft.delete()

    def test_that_went_with_a_run_are_refused_at_the_next_submission(self, who: Principal) -> None:
        run = rich(who)
        spec = run_actions.clone_spec(run)
        deletion.delete(run, who.user)
        purge()
        with pytest.raises(SpecError, match="upload"):
            run_actions.submit(spec, who)
