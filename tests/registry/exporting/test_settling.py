from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from jobs.scheduling import run_actions
from registry.exports.completion import finish_export, settle_all
from registry.models import Export, ModelVersion
from tests.people import make_contributor
from tests.registry.exporting.builders import FOUND, REFUSAL, ends, run_of, started
from workspaces.models import AuditEvent
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db


def settled(export: Export) -> Export:
    settle_all()
    export.refresh_from_db()
    return export


class TestDone:
    def test_makes_a_version_that_comes_from_the_other(self) -> None:
        export, played = started()
        ends(export, played, FOUND)
        made = settled(export).result
        assert made is not None
        assert (export.state, made.number, made.kind, made.parent, made.run) == (
            "done",
            2,
            "export",
            export.version,
            export.run,
        )
        assert [file.path for file in made.files.all()] == ["model.onnx"]
        assert '"number":1' in made.certificate.partition('"parent":')[2].replace(" ", "")
        assert export.report is not None
        assert export.report["differences"] == FOUND["differences"]

    def test_asked_again_makes_no_other(self) -> None:
        export, played = started()
        ends(export, played, FOUND)
        for _ in range(3):
            finish_export(export.pk)
        assert ModelVersion.objects.count() == 2
        assert AuditEvent.objects.filter(verb="model.registered").count() == 2

    def test_waits_while_the_run_goes_on(self) -> None:
        export, _ = started()
        finish_export(export.pk)
        assert settled(export).state == "waiting"

    def test_whoever_asked_may_be_gone_by_then(self) -> None:
        export, played = started()
        ends(export, played, FOUND)
        Export.objects.update(created_by=None)
        assert settled(export).state == "done"


class TestRefused:
    def test_with_the_sentence_of_the_script(self) -> None:
        export, played = started()
        ends(export, played, {"refusal": REFUSAL, "field": "factory"}, code=1, model=False)
        assert (settled(export).state, export.message) == ("refused", REFUSAL)
        assert export.ended_at is not None

    def test_with_the_cause_of_a_run_that_said_nothing(self) -> None:
        export, played = started()
        ends(export, played, b"", code=1, model=False)
        assert settled(export).message.startswith("Rank 0 exited with code 1")

    def test_with_who_canceled_it(self) -> None:
        export, _ = started()
        run_actions.cancel(run_of(export), make_contributor())
        run = run_of(export)
        run.state, run.reason, run.facts = "Canceled", "canceled", {"who": "carl"}
        run.save()
        assert settled(export).message == "Canceled by carl."

    def test_where_its_run_was_deleted(self) -> None:
        export, _ = started()
        run_of(export).delete()
        assert "was deleted" in settled(export).message

    @pytest.mark.parametrize(
        ("report", "model"),
        [
            (FOUND, False),
            (b"not JSON", True),
            ({**FOUND, "differences": []}, True),
            ({**FOUND, "differences": [{**FOUND["differences"][0], "within": False}]}, True),
            ({**FOUND, "refusal": REFUSAL}, True),
        ],
    )
    def test_where_a_run_that_ended_well_proves_nothing(self, report: Any, model: bool) -> None:
        export, played = started()
        ends(export, played, report, model=model)
        assert settled(export).state == "refused"
        assert "without a model" in export.message
        assert ModelVersion.objects.count() == 1

    def test_where_the_bytes_of_the_model_are_gone_from_the_hub(self) -> None:
        export, played = started()
        ends(export, played, FOUND)
        blobs.path(run_of(export).artifacts.get(path="onnx/model.onnx").sha256).unlink()
        assert settled(export).state == "refused"
        assert export.message == (
            "The run has completed, but the bytes of model.onnx are no longer on the hub; run the job again."
        )


class TestPromptness:
    def test_one_that_fails_on_the_disk_keeps_no_other_waiting(
        self, caplog: pytest.LogCaptureFixture, settings: Any, tmp_path: Path
    ) -> None:
        settings.DATA_DIR = tmp_path
        export, played = started()
        ends(export, played, FOUND)
        report = blobs.path(run_of(export).artifacts.get(path="export-report.json").sha256)
        report.unlink()
        # As on a disk that fails: there is a file, and it cannot be read.
        report.symlink_to("/proc/self/mem")
        other = Export.objects.create(version=export.version, run=None)
        assert settled(export).state == "waiting"
        assert settled(other).state == "refused"
        assert f"Export {export.pk} could not be settled." in caplog.text

    def test_the_end_of_the_run_has_it_settled_at_once(
        self, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        export, played = started()
        with django_capture_on_commit_callbacks() as callbacks:
            ends(export, played, FOUND)
        asked = [getattr(callback, "args", ()) for callback in callbacks]
        assert ("registry.tasks.settle_exports",) in asked
