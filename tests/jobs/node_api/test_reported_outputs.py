from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

import pytest

from jobs import outputs
from jobs.models import Artifact
from tests.jobs.builders import (
    both_running,
    ended,
    running,
)
from trainhub_launch.report import OutputFile
from workspaces.access import Principal
from workspaces.stored_files import blob_writer, blobs

pytestmark = pytest.mark.django_db


def blob(content: bytes, path: Path) -> OutputFile:
    path.write_bytes(content)
    return OutputFile("model.pt", len(content), blob_writer.store_file(path))


def listed() -> dict[str, str]:
    return dict(Artifact.objects.values_list("path", "sha256"))


class TestOutputs:
    def test_become_artifacts(self, who: Principal, tmp_path: Path) -> None:
        alpha, run = running(who)
        output = blob(b"weights", tmp_path / "m")
        assert alpha.finish(run, outputs=(output,)).settled
        artifact = Artifact.objects.get()
        assert (artifact.path, artifact.size_bytes, artifact.sha256) == ("model.pt", 7, output.sha256)
        kept_at = blobs.path(output.sha256).stat().st_mtime
        assert artifact.created_at.timestamp() >= kept_at, (
            "or a purge would take the bytes for kept by somebody else"
        )

    def test_that_are_not_here_yet_keep_the_part_open(self, who: Principal, tmp_path: Path) -> None:
        alpha, run = running(who)
        late = secrets.token_bytes(16)
        missing = OutputFile("model.pt", 16, hashlib.sha256(late).hexdigest())
        assert not alpha.finish(run, outputs=(missing,)).settled
        blob(late, tmp_path / "m")
        assert alpha.report().settled == ((run.pk, 1),)
        assert Artifact.objects.count() == 1

    @pytest.mark.parametrize(("error", "is_kept"), [("", False), ("outputs.json cannot be read.", True)])
    def test_that_were_stored_early_stay_when_the_last_report_has_an_error(
        self, error: str, is_kept: bool, who: Principal, tmp_path: Path
    ) -> None:
        alpha, run = running(who)
        alpha.tell(run, "running", outputs=(blob(b"weights", tmp_path / "m"),))
        assert Artifact.objects.exists()
        alpha.tell(run, "done", ended(0), outputs=(), error=error)
        assert Artifact.objects.exists() is is_kept

    @pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", ".", "a//b"])
    def test_a_path_outside_is_not_listed(self, path: str, who: Principal, tmp_path: Path) -> None:
        alpha, run = running(who)
        output = blob(b"weights", tmp_path / "m")
        alpha.finish(run, outputs=(OutputFile(path, 7, output.sha256),))
        assert not Artifact.objects.exists()

    @pytest.mark.parametrize("order", [("alpha", "beta", "beta"), ("beta", "alpha", "beta")])
    def test_equal_files_of_two_nodes_are_one_and_different_files_are_kept_apart_in_any_order(
        self, order: tuple[str, ...], who: Principal, tmp_path: Path
    ) -> None:
        alpha, beta, run = both_running(who)
        same, other = blob(b"same", tmp_path / "m"), blob(b"other", tmp_path / "n")
        log = OutputFile("log.txt", 4, same.sha256)
        for name in order:
            if name == "alpha":
                alpha.tell(run, "done", ended(0), outputs=(same, log))
            else:
                beta.tell(run, "done", ended(1), outputs=(other, log))
        assert dict(Artifact.objects.values_list("path", "sha256")) == {
            "model.pt": same.sha256,
            "log.txt": same.sha256,
            "node_1/model.pt": other.sha256,
        }

    def test_of_a_run_that_runs_are_listed_as_they_are_now(self, who: Principal, tmp_path: Path) -> None:
        alpha, run = running(who)
        first, second = blob(b"epoch 1", tmp_path / "m"), blob(b"epoch 2", tmp_path / "n")
        old = OutputFile("old.pt", 7, first.sha256)
        alpha.tell(run, "running", outputs=(first, old))
        outputs.put_output(run, 1, "curve.png", first.sha256, 7)
        assert listed() == {"model.pt": first.sha256, "old.pt": first.sha256, "curve.png": first.sha256}
        alpha.tell(run, "running", outputs=(second,))
        assert listed() == {"model.pt": second.sha256, "curve.png": first.sha256}
        alpha.tell(run, "done", ended(0), outputs=())
        assert listed() == {"curve.png": first.sha256}, "what the script has removed is no output"

    def test_of_two_nodes_that_change_while_they_run_keep_their_places(
        self, who: Principal, tmp_path: Path
    ) -> None:
        alpha, beta, run = both_running(who)
        same, next_, last = (blob(name, tmp_path / "m") for name in (b"same", b"next", b"last"))
        beta.tell(run, "running", outputs=(same,))
        beta.tell(run, "running", outputs=(next_,))
        assert listed() == {"model.pt": next_.sha256}
        alpha.tell(run, "running", outputs=(same,))
        assert listed() == {"model.pt": same.sha256, "node_1/model.pt": next_.sha256}
        beta.tell(run, "running", outputs=(last,))
        assert listed() == {"model.pt": same.sha256, "node_1/model.pt": last.sha256}
        beta.tell(run, "running", outputs=(same,))
        beta.tell(run, "done", ended(1), outputs=())
        assert listed() == {"model.pt": same.sha256}, "the first node still has it"

    def test_replace_what_the_script_logged_under_their_path_and_leave_the_rest(
        self, who: Principal, tmp_path: Path
    ) -> None:
        alpha, run = running(who)
        logged = blob(b"logged", tmp_path / "l").sha256
        for path in ("model.pt", "curve.png"):
            outputs.put_output(run, 1, path, logged, 6)
        alpha.finish(run, outputs=(output := blob(b"weights", tmp_path / "m"),))
        assert dict(Artifact.objects.values_list("path", "sha256")) == {
            "model.pt": output.sha256,
            "curve.png": logged,
        }

    def test_told_again_do_not_replace_what_was_logged_since(self, who: Principal, tmp_path: Path) -> None:
        alpha, run = running(who)
        missing = OutputFile("late.pt", 4, hashlib.sha256(b"late").hexdigest())
        alpha.finish(run, outputs=(blob(b"weights", tmp_path / "m"), missing))
        logged = blob(b"logged", tmp_path / "l").sha256
        outputs.put_output(run, 1, "model.pt", logged, 6)
        blob(b"late", tmp_path / "n")
        assert alpha.report().settled
        assert dict(Artifact.objects.values_list("path", "sha256")) == {
            "model.pt": logged,
            "late.pt": missing.sha256,
        }
