"""What the rules in force remove, and what they leave."""

from __future__ import annotations

import pytest
from django.utils import timezone

from clusters.models import Lease, StoredSeries
from datastores.models import Dataset, DatasetVersion, Datastore
from jobs.logs import log_store
from jobs.models import (
    Artifact,
    Checkpoint,
    CheckpointFile,
    DataRemoval,
    DatasetOrigin,
    Run,
    RunTag,
)
from jobs.retention_rules import contents, previews, removal_round, rule_changes
from jobs.retention_rules.rules import Rule
from jobs.states import DataKind, RunKind, RunState
from registry.models import ModelFile, ModelVersion, RegisteredModel
from tests.jobs.retention_rules.rules_of import (
    LOG,
    LOG_TEXT,
    after_grace,
    old_run,
    remove_all,
    removed,
    set_rule,
)
from tracking.models import LoggedModel, LoggedModelFile, Metric, MetricBlock, MetricSlice, Param
from workspaces.access import Principal
from workspaces.stored_files import blobs

pytestmark = pytest.mark.usefixtures("valkey")


class TestEachKind:
    def test_logs_go_and_event_files_and_everything_else_stays(self, who: Principal) -> None:
        run = old_run(who)
        assert remove_all(who, Rule(30), DataKind.LOGS) == 1
        assert log_store.log_sizes(run.pk, 1) == {}
        assert log_store.event_file_sizes(run.pk, 1) != {}
        assert log_store.is_complete(run.pk, 1, LOG)
        assert Artifact.objects.filter(run=run).exists()
        assert StoredSeries.objects.filter(holder=run.pk).exists()
        assert removed(run) == {"logs"}
        assert DataRemoval.objects.get().size_bytes == len(LOG_TEXT)

    def test_outputs_go_with_their_bytes_and_the_checkpoints_say_so(self, who: Principal) -> None:
        run = old_run(who)
        hashes = [
            *Artifact.objects.values_list("sha256", flat=True),
            *CheckpointFile.objects.values_list("sha256", flat=True),
            *LoggedModelFile.objects.values_list("sha256", flat=True),
        ]
        assert len(hashes) == 3
        assert remove_all(who, Rule(30), DataKind.OUTPUTS) == 1
        assert not Artifact.objects.exists()
        assert not CheckpointFile.objects.exists()
        assert not LoggedModelFile.objects.exists()
        assert LoggedModel.objects.exists()
        assert Checkpoint.objects.get().state == "removed"
        assert not any(blobs.exists(sha256) for sha256 in hashes)
        assert log_store.log_sizes(run.pk, 1) != {}

    def test_points_go_and_the_last_values_and_parameters_stay(self, who: Principal) -> None:
        run = old_run(who)
        assert remove_all(who, Rule(30), DataKind.METRICS) == 1
        assert not MetricSlice.objects.exists()
        assert not MetricBlock.objects.exists()
        assert log_store.event_file_sizes(run.pk, 1) == {}
        metric = Metric.objects.get()
        assert (metric.count, metric.last_step, metric.max_value) == (9, 8, 1.0)
        assert Param.objects.get().value == "0.1"
        assert log_store.log_sizes(run.pk, 1) != {}

    def test_telemetry_goes(self, who: Principal) -> None:
        old_run(who)
        assert remove_all(who, Rule(30), DataKind.TELEMETRY) == 1
        assert not StoredSeries.objects.exists()

    def test_what_is_stored_again_goes_again(self, who: Principal) -> None:
        run = old_run(who)
        remove_all(who)
        Artifact.objects.create(run=run, attempt=1, path="late", size_bytes=1, sha256="a" * 64)
        assert removal_round.remove_due(after_grace()) == 1
        assert not Artifact.objects.exists()
        assert DataRemoval.objects.get(kind="outputs").done_at is not None


class TestWhichRuns:
    def test_only_those_that_ended_long_enough_ago(self, who: Principal) -> None:
        old, young = old_run(who, 40), old_run(who, 20)
        assert remove_all(who) == 4
        assert removed(old) == {"logs", "outputs", "metrics", "telemetry"}
        assert removed(young) == set()
        assert removal_round.remove_due(after_grace()) == 0

    def test_only_failed_and_canceled_ones_if_the_rule_says_so(self, who: Principal) -> None:
        good = old_run(who)
        failed, canceled = old_run(who, state=RunState.FAILED), old_run(who, state=RunState.CANCELED)
        assert remove_all(who, Rule(30, only_unsuccessful=True), DataKind.LOGS) == 2
        assert removed(good) == set()
        assert removed(failed) == removed(canceled) == {"logs"}

    def test_none_that_has_not_ended_or_came_here_later(self, who: Principal) -> None:
        running = old_run(who, state=RunState.RUNNING)
        imported = old_run(who, kind=RunKind.EXTERNAL)
        Run.objects.filter(pk=imported.pk).update(created_at=timezone.now())
        assert remove_all(who) == 0
        assert removed(running) == removed(imported) == set()

    def test_none_of_an_archived_workspace(self, who: Principal) -> None:
        old_run(who)
        set_rule(who.workspace, who.user, Rule(30))
        who.workspace.archived_at = timezone.now()
        who.workspace.save()
        assert removal_round.remove_due(after_grace()) == 0

    def test_by_default_everything_is_kept(self, who: Principal) -> None:
        old_run(who, 4000)
        assert removal_round.remove_due(after_grace()) == 0
        assert Artifact.objects.exists()


def protect(run: Run, how: str, who: Principal) -> None:
    if how == "pinned":
        Run.objects.filter(pk=run.pk).update(pinned=True)
    elif how == "tagged":
        RunTag.objects.create(run=run, experiment=run.experiment, key="keep", value="for the paper")
    elif how == "model":
        model = RegisteredModel.objects.create(workspace=who.workspace, name="digits")
        ModelVersion.objects.create(model=model, number=1, run=run, source_path="model.pt")
    elif how == "resumed":
        waiting = old_run(who, 1, state=RunState.QUEUED)
        waiting.spec["checkpoint"] = {"resume_from": run.pk}
        waiting.save()
    elif how == "lease":
        part = run.attempts.get().members.get()
        Lease.objects.create(
            node=part.node, holder=run.pk, attempt=1, workspace=who.workspace, label="run", gpus=[]
        )
    elif how == "dataset":
        store = Datastore.objects.create(workspace=who.workspace, name="store")
        dataset = Dataset.objects.create(workspace=who.workspace, name="set", datastore=store)
        version = DatasetVersion.objects.create(dataset=dataset, number=1)
        DatasetOrigin.objects.create(version=version, run=run, run_number=run.number, attempt=1)


class TestWhatProtects:
    @pytest.mark.parametrize("how", ["pinned", "tagged", "model", "resumed", "lease", "dataset"])
    def test_a_run_is_kept_whole_and_the_preview_says_why(self, who: Principal, how: str) -> None:
        run, other = old_run(who), old_run(who)
        protect(run, how, who)
        preview = previews.preview_own(who.workspace, {DataKind.LOGS: Rule(30)})
        (logs,) = preview.kinds
        assert [reason.key for reason in logs.reasons] == [how]
        assert [run.pk for run in logs.reasons[0].listed] == [run.pk]
        assert (logs.count, logs.keep_count) == (1, 1)
        assert remove_all(who) == 4
        assert removed(run) == set()
        assert removed(other) != set()
        assert log_store.log_sizes(run.pk, 1) != {}
        assert Artifact.objects.filter(run=run).exists()

    def test_a_job_is_kept_for_the_model_that_its_process_logged(self, who: Principal) -> None:
        job = old_run(who)
        logged = old_run(who, parent=job, kind=RunKind.EXTERNAL)
        protect(logged, "model", who)
        assert remove_all(who) == 0

    def test_a_tag_that_says_no_does_not(self, who: Principal) -> None:
        run = old_run(who)
        RunTag.objects.create(run=run, experiment=run.experiment, key="keep", value="no")
        assert remove_all(who) == 4

    def test_a_file_that_a_kept_run_or_a_model_names_stays(self, who: Principal) -> None:
        run, kept = old_run(who), old_run(who, 1)
        sha256 = Artifact.objects.get(run=run).sha256
        checkpoint = CheckpointFile.objects.get(checkpoint__run=run).sha256
        model = RegisteredModel.objects.create(workspace=who.workspace, name="digits")
        version = ModelVersion.objects.create(model=model, number=1, source_path="model.pt", kind="upload")
        ModelFile.objects.create(version=version, path="model.pt", size_bytes=1, sha256=sha256)
        copy = Checkpoint.objects.create(run=kept, attempt=0, number=2, name="step-1", state="complete")
        CheckpointFile.objects.create(
            checkpoint=copy, node_rank=0, path="step-1/a", size_bytes=2, sha256=checkpoint
        )
        remove_all(who)
        assert removed(run) != set()
        assert blobs.exists(sha256)
        assert blobs.exists(checkpoint)

    def test_a_run_that_is_pinned_between_two_batches_is_kept(
        self, who: Principal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = [old_run(who), old_run(who)]
        monkeypatch.setattr(removal_round, "BATCH_RUNS", 1)
        remove, seen = contents.remove, []

        def remove_and_pin(kind: DataKind, batch: list[str]) -> None:
            seen.append(batch)
            Run.objects.filter(pk=runs[1].pk).update(pinned=True)
            remove(kind, batch)

        monkeypatch.setattr(contents, "remove", remove_and_pin)
        assert remove_all(who, Rule(30), DataKind.LOGS) == 1
        assert seen == [[runs[0].pk]]


class TestPreview:
    def test_is_what_is_then_removed(self, who: Principal) -> None:
        for days in (31, 33, 45, 100):
            old_run(who, days)
        protect(old_run(who, 50), "pinned", who)
        old_run(who, 3)
        choices = dict.fromkeys(DataKind, Rule(32))
        preview = previews.preview_own(who.workspace, choices)
        expected = {kind.kind: {run.pk for run in kind.listed} for kind in preview.kinds}
        sizes = {kind.kind: kind.size_bytes for kind in preview.kinds}
        assert {kind.count for kind in preview.kinds} == {3}
        set_rule(who.workspace, who.user, Rule(32))
        # The rule is put in force as a day later; what is old enough is judged as in the preview.
        rule_changes.apply_rules(who.workspace, after_grace())
        assert removal_round.remove_due(timezone.now()) == 12
        for kind in DataKind:
            rows = DataRemoval.objects.filter(kind=kind)
            assert {row.run_id for row in rows} == expected[kind]
            assert sum(row.size_bytes for row in rows) == sizes[kind] > 0

    def test_changes_nothing(self, who: Principal) -> None:
        old_run(who)
        previews.preview_own(who.workspace, dict.fromkeys(DataKind, Rule(1)))
        assert removal_round.remove_due(after_grace()) == 0
        assert Artifact.objects.exists()
        assert not DataRemoval.objects.exists()
