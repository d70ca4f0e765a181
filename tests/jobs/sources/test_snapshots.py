from __future__ import annotations

import os
import stat
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from jobs.models import Draft, Run, Snapshot
from jobs.sources import snapshots
from jobs.sources.snapshots import SnapshotError
from tests.jobs.builders import queued, snapshot, zipped
from tests.jobs.sources.refused_zips import refused, with_entry
from workspaces.access import Principal
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db


class TestFreeze:
    def test_the_same_folder_is_the_same_snapshot_however_it_was_packed(self, who: Principal) -> None:
        first = snapshot(who, {"a.py": "1", "b/c.py": "2"})
        second = snapshot(who, {"b/c.py": "2", "a.py": "1"})
        assert first.pk == second.pk
        assert first.paths == ("a.py", "b/c.py")

    def test_one_that_nobody_submits_is_kept_for_a_time(self, who: Principal) -> None:
        abandoned, again = snapshot(who, {"a.py": "1"}), snapshot(who, {"b.py": "2"})
        used = Run.objects.get(pk=queued(who).pk).spec["source"]["id"]
        draft = snapshot(who, {"c.py": "3"})
        Draft.objects.create(workspace=who.workspace, user=who.user, steps={"source": {"id": draft.sha256}})
        Snapshot.objects.update(created_at=timezone.now() - timedelta(days=31))
        os.utime(blobs.path(abandoned.sha256), (0, 0))
        assert snapshot(who, {"b.py": "2"}).pk == again.pk

        snapshots.release_abandoned(timezone.now() - timedelta(days=30))

        left = set(Snapshot.objects.values_list("sha256", flat=True))
        assert left == {again.sha256, used, draft.sha256}
        assert not blobs.path(abandoned.sha256).exists()

    def test_what_is_stored_is_named_by_its_hash_and_unpacks_to_the_same(self, who: Principal) -> None:
        made = snapshot(who, {"a.py": "one", "deep/b.bin": b"\x00\xff"})
        with zipfile.ZipFile(blobs.path(made.sha256)) as archive:
            assert archive.read("deep/b.bin") == b"\x00\xff"
        assert blobs.path(made.sha256).stat().st_size == made.size_bytes
        assert made.manifest == [{"path": "a.py", "size": 3}, {"path": "deep/b.bin", "size": 2}]

    def test_one_folder_around_everything_is_opened(self, who: Principal) -> None:
        assert snapshot(who, {"project/train.py": "1", "project/lib/x.py": "2"}).paths == (
            "lib/x.py",
            "train.py",
        )

    def test_what_a_mac_packs_beside_it_does_not_hide_it(self, who: Principal) -> None:
        assert snapshot(who, {"project/train.py": "1", "__MACOSX/project/._train.py": "x"}).paths == (
            "train.py",
        )

    def test_but_not_a_python_package_whose_name_is_needed(self, who: Principal) -> None:
        assert snapshot(who, {"pkg/__init__.py": "", "pkg/train.py": "1"}).paths == (
            "pkg/__init__.py",
            "pkg/train.py",
        )

    def test_who_may_execute_is_kept(self, who: Principal) -> None:
        made = snapshots.from_zip(with_entry("run.sh", mode=stat.S_IFREG | 0o755), who)
        with zipfile.ZipFile(blobs.path(made.sha256)) as archive:
            assert {info.filename: (info.external_attr >> 16) & 0o777 for info in archive.infolist()} == {
                "run.sh": 0o755,
                "train.py": 0o644,
            }


class TestIgnore:
    def test_our_own_ignore_file_comes_before_the_others(self, who: Principal) -> None:
        made = snapshot(
            who, {".trainhubignore": "data/\n", ".gitignore": "*.py\n", "train.py": "1", "data/big.bin": "2"}
        )
        assert made.paths == (".gitignore", ".trainhubignore", "train.py")
        assert made.warnings == ["1 file or folder was left out by .trainhubignore."]

    def test_then_azure_mls_then_gits(self, who: Principal) -> None:
        files = {"train.py": "1", "x.bin": "2", "y.bin": "3"}
        azures = snapshot(who, {**files, ".amlignore": "x.*", ".gitignore": "y.*"})
        assert azures.paths == (".amlignore", ".gitignore", "train.py", "y.bin")
        assert snapshot(who, {**files, ".gitignore": "*.bin\n!y.bin"}).paths == (
            ".gitignore",
            "train.py",
            "y.bin",
        )

    def test_version_control_and_caches_never_travel(self, who: Principal) -> None:
        made = snapshot(who, {"train.py": "1", ".git/config": "secret", "__pycache__/train.pyc": "x"})
        assert made.paths == ("train.py",)

    def test_nothing_left_is_said(self, who: Principal) -> None:
        assert "no file" in refused(zipped({".git/config": "x"}), who)


class TestFolder:
    def test_takes_what_lies_in_it(self, tmp_path: Path, who: Principal) -> None:
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib/x.py").write_text("1")
        (tmp_path / "train.py").write_text("2")
        assert snapshots.from_folder(tmp_path, who).paths == ("lib/x.py", "train.py")

    def test_a_link_that_leads_out_is_refused(self, tmp_path: Path, who: Principal) -> None:
        (tmp_path / "passwd").symlink_to("/etc/passwd")
        with pytest.raises(SnapshotError, match="leads out"):
            snapshots.from_folder(tmp_path, who)

    def test_a_link_inside_is_taken_as_the_file_it_means(self, tmp_path: Path, who: Principal) -> None:
        (tmp_path / "train.py").write_text("2")
        (tmp_path / "same.py").symlink_to("train.py")
        assert snapshots.from_folder(tmp_path, who).paths == ("same.py", "train.py")

    def test_a_linked_folder_is_refused_unless_ignored(self, tmp_path: Path, who: Principal) -> None:
        (tmp_path / "train.py").write_text("2")
        (tmp_path / "data").symlink_to("/usr", target_is_directory=True)
        with pytest.raises(SnapshotError, match="link to a folder"):
            snapshots.from_folder(tmp_path, who)
        (tmp_path / ".trainhubignore").write_text("data/\n")
        assert snapshots.from_folder(tmp_path, who).paths == (".trainhubignore", "train.py")

    def test_a_link_to_itself_is_refused(self, tmp_path: Path, who: Principal) -> None:
        (tmp_path / "round").symlink_to("round")
        with pytest.raises(SnapshotError, match=r"leads back to itself|link to nothing"):
            snapshots.from_folder(tmp_path, who)

    def test_a_link_to_nothing_is_refused(self, tmp_path: Path, who: Principal) -> None:
        (tmp_path / "data.csv").symlink_to("gone.csv")
        with pytest.raises(SnapshotError, match=r"'data.csv' is a link to nothing; remove it"):
            snapshots.from_folder(tmp_path, who)

    def test_a_folder_that_is_not_there_is_refused_by_name(self, tmp_path: Path, who: Principal) -> None:
        with pytest.raises(SnapshotError, match="nothing is not a folder on the hub's machine"):
            snapshots.from_folder(tmp_path / "nothing", who)

    def test_a_pipe_is_refused(self, tmp_path: Path, who: Principal) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(SnapshotError, match="not a regular file"):
            snapshots.from_folder(tmp_path, who)

    def test_a_zip_of_it_is_the_same_snapshot(self, tmp_path: Path, who: Principal) -> None:
        (tmp_path / "train.py").write_text("print()")
        assert snapshots.from_folder(tmp_path, who).sha256 == snapshot(who, {"train.py": "print()"}).sha256


class TestExamples:
    @pytest.mark.parametrize("example", snapshots.examples(), ids=lambda example: example.name)
    def test_each_can_be_frozen(self, example: snapshots.Example, who: Principal) -> None:
        assert snapshots.from_example(example.name, who).paths

    def test_an_unknown_one_names_those_there_are(self, who: Principal) -> None:
        with pytest.raises(Exception, match=r"there are: .*hello"):
            snapshots.from_example("nope", who)
