"""Runs whose code comes from a git repository: a real git serves it."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from clusters.models import Cluster
from environments.repositories import commit_folder
from jobs.models import FetchedCommit, Run, RunTag
from jobs.scheduling import run_actions
from jobs.sources import snapshots
from jobs.sources.snapshots import SnapshotError
from tests.environments.source_builds.git_server import GitServer, git_in
from tests.jobs.builders import queued, spec
from tests.jobs.sources.repositories import HELLO, failure, fetched, queued_source, source
from tests.people import make_person, make_workspace, principal_of
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import GitSource
from trainhub_launch.spec_reader import read_spec
from workspaces.access import Principal
from workspaces.states import Role
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db


class TestSubmission:
    def test_a_run_keeps_the_commit_that_its_branch_had(self, who: Principal, git: GitServer) -> None:
        first = git.commit("moving", HELLO)
        run = queued(who, source=source(git, "moving"))
        snapshot = FetchedCommit.objects.get().snapshot
        assert run.spec["source"] == {
            "type": "git",
            "url": git.url("moving"),
            "commit": first,
            "id": snapshot.sha256,
        }
        assert snapshot.paths == ("lib/model.py", "train.py")
        assert {tag.key: tag.value for tag in RunTag.objects.filter(run=run)} == {
            "mlflow.source.git.repoURL": git.url("moving"),
            "mlflow.source.git.commit": first,
            "mlflow.source.git.branch": "main",
        }
        second = git.commit("moving", {"train.py": "print('changed')\n"})
        assert queued(who, source=source(git, "moving", ref="main")).spec["source"]["commit"] == second
        # A clone is the same code, whatever has happened since.
        clone = run_actions.submit(run_actions.clone_spec(run), who)
        assert clone.spec["source"] == run.spec["source"]

    def test_a_tag_and_a_commit_can_be_named(self, who: Principal, git: GitServer) -> None:
        first = git.commit("tagged", HELLO, tag="v1.0")
        git.commit("tagged", {"train.py": "print('later')\n"})
        for ref in ("v1.0", first):
            row = fetched(who, git, "tagged", ref=ref)
            assert (row.commit, row.branch, row.ref) == (first, "", ref)

    def test_a_folder_of_it_is_the_source(self, who: Principal, git: GitServer) -> None:
        git.commit("folders", {"examples/mnist/train.py": "1", "examples/data.bin": "2", "README.md": "3"})
        run = queued(who, source=source(git, "folders", path="/examples/mnist/"))
        assert run.spec["source"]["path"] == "examples/mnist"
        assert FetchedCommit.objects.get().snapshot.paths == ("train.py",)

    def test_a_repeated_request_is_the_same_run_though_the_branch_has_moved(
        self, who: Principal, git: GitServer
    ) -> None:
        git.commit("repeated", HELLO)
        Cluster.objects.create(name="local")
        request = spec(who, source=source(git, "repeated", ref="main"))
        run = run_actions.submit(request, who, idempotency_key="once")
        git.commit("repeated", {"train.py": "print('changed')\n"})
        assert run_actions.submit(request, who, idempotency_key="once").pk == run.pk
        other = spec(who, source=source(git, "repeated"))
        with pytest.raises(SpecError, match="another spec"):
            run_actions.submit(other, who, idempotency_key="once")

    def test_a_commit_that_this_hub_has_not_fetched_is_refused(self, who: Principal, git: GitServer) -> None:
        git.commit("forged", HELLO)
        stored = queued(who, source=source(git, "forged")).spec["source"]
        stranger = principal_of(make_person("mallory", Role.CONTRIBUTOR, make_workspace("other")))
        for forged, caller in (
            ({**stored, "commit": "0" * 40}, who),
            ({**stored, "url": "https://github.com/pytorch/pytorch"}, who),
            ({**stored, "id": "0" * 64}, who),
            (stored, stranger),
        ):
            with pytest.raises(run_actions.SubmitRefused) as error:
                run_actions.submit(replace(spec(caller), source=GitSource(**forged)), caller)
            assert error.value.field == "source.commit"

    def test_the_script_must_be_in_it(self, who: Principal, git: GitServer) -> None:
        git.commit("without", {"other.py": "1"})
        with pytest.raises(run_actions.SubmitRefused) as error:
            queued(who, source=source(git, "without"))
        assert error.value.field == "script"
        assert not Run.objects.exists()

    def test_its_snapshot_goes_with_its_last_run(self, who: Principal, git: GitServer) -> None:
        git.commit("purged", HELLO)
        run = queued(who, source=source(git, "purged"))
        sha256 = run.spec["source"]["id"]
        snapshots.release_unused([(who.workspace.pk, sha256)])
        assert FetchedCommit.objects.count() == 1
        Run.objects.all().delete()
        snapshots.release_unused([(who.workspace.pk, sha256)])
        assert not FetchedCommit.objects.exists()


class TestFiles:
    def test_ignored_files_and_the_executable_bit_are_as_in_a_folder(
        self, who: Principal, git: GitServer
    ) -> None:
        # Attributes of the repository could otherwise leave files out, or run a program.
        attributes = "*.py export-ignore filter=steal ident\n"
        files = {".gitattributes": attributes, ".trainhubignore": "data/\n", "data/a.bin": "x"}
        git.commit("files", {**files, "run.sh": "#!/bin/sh\n", "train.py": "# $Id$\n"}, executable="run.sh")
        row = fetched(who, git, "files")
        assert row.snapshot.paths == (".gitattributes", ".trainhubignore", "run.sh", "train.py")
        with zipfile.ZipFile(blobs.path(row.snapshot.sha256)) as archive:
            assert archive.read("train.py") == b"# $Id$\n"
            assert (archive.getinfo("run.sh").external_attr >> 16) & 0o777 == 0o755

    def test_links_are_followed_inside_and_refused_outside(self, who: Principal, git: GitServer) -> None:
        git.commit("links", {"train.py": "1"})
        tree = git.folder / "links-tree"
        (tree / "again.py").symlink_to("train.py")
        git.commit("links", {})
        assert fetched(who, git, "links").snapshot.paths == ("again.py", "train.py")
        (tree / "passwd").symlink_to("/etc/passwd")
        git.commit("links", {})
        with pytest.raises(SnapshotError, match="'passwd' is a link that leads out of the folder"):
            fetched(who, git, "links")

    def test_submodules_and_files_of_lfs_are_named_as_missing(self, who: Principal, git: GitServer) -> None:
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 5\n"
        git.commit("inner", HELLO)
        git.commit("parts", {"train.py": "1", "weights.bin": pointer})
        tree = git.folder / "parts-tree"
        git_in(
            tree, "-c", "protocol.file.allow=always", "submodule", "add", str(git.folder / "inner.git"), "sub"
        )
        git.commit("parts", {})
        row = fetched(who, git, "parts")
        assert row.snapshot.paths == (".gitmodules", "train.py", "weights.bin")
        submodules, pointers = row.warnings
        assert "submodules are not fetched, their folders are empty: sub;" in submodules
        assert "only their pointers are there: weights.bin;" in pointers
        findings = run_actions.preview(spec(who, source=queued_source(row)), who).findings
        levels = {(item.level, item.field) for item in findings if item.message in row.warnings}
        assert levels == {("warning", "source")}

    def test_one_that_is_too_large_is_refused_before_it_is_written(
        self, who: Principal, git: GitServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        git.commit("large", {f"{number}.txt": "x" for number in range(4)})
        monkeypatch.setattr(commit_folder, "MAX_FILES", 3)
        field, message = failure(who, git, "large")
        assert field == "source.url"
        assert "it has 4 files" in message
        assert "Name a smaller folder of it" in message

    def test_an_empty_folder_is_refused(self, who: Principal, git: GitServer) -> None:
        git.commit("empty", {".trainhubignore": "*\n"})
        with pytest.raises(SnapshotError, match="there is no file in it"):
            fetched(who, git, "empty")


class TestSpec:
    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"url": ""}, "source.url"),
            ({"url": 3}, "source.url"),
            ({"branch": "main"}, "source.branch"),
            ({"commit": "0" * 40}, "source.commit"),
            ({"id": "0" * 64}, "source.id"),
            ({"url": "https://host/" + "x" * 1000}, "source.url"),
        ],
    )
    def test_names_the_field(self, changes: dict[str, object], field: str) -> None:
        data = {"type": "git", "url": "https://host/owner/name"} | changes
        with pytest.raises(SpecError) as error:
            read_spec({"source": data, "script": "train.py"})
        assert error.value.field == field

    def test_is_written_as_it_was_read(self) -> None:
        data = {"type": "git", "url": "https://host/owner/name", "ref": "main"}
        assert read_spec({"source": data, "script": "train.py"}).to_json()["source"] == data


class TestApi:
    def test_fetches_now_and_answers_with_a_source_for_runs(self, who: Principal, git: GitServer) -> None:
        client = Client()
        commit = git.commit("api", HELLO)
        client.force_login(who.user)
        answer = self.post(client, {"url": git.url("api"), "ref": "main"})
        assert answer.status_code == 201, answer.content
        body = answer.json()
        assert (body["commit"], body["branch"], body["files"], body["warnings"]) == (commit, "main", 2, [])
        assert queued(who, source=body["source"]).spec["source"]["commit"] == commit

    def test_an_error_names_the_field_of_the_body(self, who: Principal, git: GitServer) -> None:
        client = Client()
        git.commit("api", HELLO)
        client.force_login(who.user)
        for body, field in (
            ({"url": git.url("api"), "ref": "gone"}, "ref"),
            ({"url": git.url("api"), "path": "gone"}, "path"),
            ({"ref": "main"}, "url"),
            ({"url": git.url("api"), "branch": "main"}, "branch"),
            ({"url": git.url("api"), "commit": "0" * 40, "id": "0" * 64}, "commit"),
        ):
            answer = self.post(client, body)
            assert answer.status_code == 400, answer.content
            assert answer.json()["errors"][0]["field"] == field

    @staticmethod
    def post(client: Client, body: dict[str, str]) -> Any:
        return client.post("/api/v1/snapshots/git/", body, content_type="application/json")


def test_nothing_of_a_repository_stays_on_the_disk(
    who: Principal, git: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git.commit("clean", HELLO)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fetched(who, git, "clean")
    failure(who, git, "clean", path="nothing")
    assert not any(tmp_path.iterdir())
