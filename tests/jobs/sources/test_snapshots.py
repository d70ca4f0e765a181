from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.sources import snapshots
from jobs.sources.snapshots import SnapshotError
from tests.jobs.builders import snapshot, zipped
from workspaces.access import Principal
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db


def refused(file: io.BytesIO, who: Principal) -> str:
    with pytest.raises(SnapshotError) as error:
        snapshots.from_zip(file, who)
    assert error.value.field == "source"
    return error.value.message


def with_entry(name: str, *, mode: int = stat.S_IFREG | 0o644, content: bytes = b"x") -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("train.py", "print()")
        info = zipfile.ZipInfo("placeholder")
        info.filename = info.orig_filename = name
        info.create_system = 3
        info.external_attr = mode << 16
        archive.writestr(info, content)
    return out


class TestFreeze:
    def test_the_same_folder_is_the_same_snapshot_however_it_was_packed(self, who: Principal) -> None:
        first = snapshot(who, {"a.py": "1", "b/c.py": "2"})
        second = snapshot(who, {"b/c.py": "2", "a.py": "1"})
        assert first.pk == second.pk
        assert first.paths == ("a.py", "b/c.py")

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


class TestHostileZips:
    @pytest.mark.parametrize(
        ("name", "word"),
        [
            ("/etc/passwd", "absolute"),
            ("../evil.py", "leads out"),
            ("a/../../evil.py", "leads out"),
            ("C:/evil.py", "absolute"),
            ("c:evil.py", "absolute"),
            ("..\\evil.py", "backslash"),
            ("a//b.py", "plain relative"),
            ("./a.py", "plain relative"),
            ("a\nb.py", "cannot be shown"),
            ("x" * 300, "too long"),
        ],
    )
    def test_a_path_that_could_lead_elsewhere_is_refused_by_name(
        self, name: str, word: str, who: Principal
    ) -> None:
        message = refused(with_entry(name), who)
        assert word in message

    def test_a_name_that_hides_behind_a_nul_is_refused(self, who: Principal) -> None:
        packed = with_entry("evil.pyZ../x").getvalue().replace(b"evil.pyZ", b"evil.py\x00")
        assert "cannot be shown" in refused(io.BytesIO(packed), who)

    @pytest.mark.parametrize(
        ("mode", "word"), [(stat.S_IFLNK, "a link"), (stat.S_IFIFO, "special"), (stat.S_IFCHR, "special")]
    )
    def test_links_and_devices_are_refused(self, mode: int, word: str, who: Principal) -> None:
        assert word in refused(with_entry("passwd", mode=mode | 0o777, content=b"/etc/passwd"), who)

    def test_a_name_twice_is_refused(self, who: Principal) -> None:
        with pytest.warns(UserWarning, match="Duplicate"):
            packed = with_entry("train.py")
        assert "twice" in refused(packed, who)

    def test_a_file_that_is_also_a_folder_is_refused(self, who: Principal) -> None:
        assert "both a file and a folder" in refused(zipped({"a": "1", "a/b": "2"}), who)

    def test_an_encrypted_entry_is_refused(self, who: Principal) -> None:
        packed = bytearray(zipped({"train.py": "1"}).getvalue())
        at = packed.rindex(b"PK\x01\x02") + 8
        packed[at : at + 2] = struct.pack("<H", 1)
        assert "encrypted" in refused(io.BytesIO(bytes(packed)), who)

    def test_a_bomb_is_refused_before_it_is_unpacked(self, who: Principal) -> None:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zeros.bin", b"\0" * 30_000_000)
        assert "200 times" in refused(out, who)

    def test_a_declared_size_that_lies_is_found_while_reading(self, who: Principal) -> None:
        packed = bytearray(zipped({"train.py": "print('hello')"}).getvalue())
        at = packed.rindex(b"PK\x01\x02") + 24
        packed[at : at + 4] = struct.pack("<L", 5)
        assert "cannot be read" in refused(io.BytesIO(bytes(packed)), who)

    def test_too_many_bytes_are_refused(self, who: Principal, settings: Settings) -> None:
        settings.MAX_SNAPSHOT_BYTES = 3000
        assert "MiB unpacked" in refused(zipped_tight({"data.bin": b"ab" * 2000}), who)

    def test_too_many_files_are_refused(self, who: Principal, settings: Settings) -> None:
        settings.MAX_SNAPSHOT_FILES = 2
        assert "3 files, and 2 are allowed" in refused(zipped({"a": "", "b": "", "c": ""}), who)

    @pytest.mark.parametrize("content", [b"", b"not a zip at all", b"PK\x05\x06"])
    def test_what_is_no_zip_is_said_to_be_none(self, content: bytes, who: Principal) -> None:
        assert "zip" in refused(io.BytesIO(content), who)

    def test_a_zip_that_was_cut_off_is_refused(self, who: Principal) -> None:
        assert "zip" in refused(io.BytesIO(zipped({"train.py": "1" * 5000}).getvalue()[:-30]), who)

    def test_a_damaged_entry_names_itself(self, who: Principal) -> None:
        packed = bytearray(zipped({"train.py": "print('hello')"}).getvalue())
        packed[45] ^= 0xFF
        assert "train.py" in refused(io.BytesIO(bytes(packed)), who)

    @pytest.mark.parametrize("place", [b"PK\x03\x04", b"*.bin"])
    def test_a_damaged_ignore_file_names_itself(self, place: bytes, who: Principal) -> None:
        packed = zipped({".trainhubignore": "*.bin", "train.py": "1"}).getvalue()
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            assert archive.infolist()[0].compress_type == zipfile.ZIP_STORED
        assert "'.trainhubignore' cannot be read" in refused(
            io.BytesIO(packed.replace(place, b"????" + place[4:], 1)), who
        )

    @pytest.mark.parametrize(
        ("at", "change"),
        [(8, 0x20), (8, 0x40), (42, 0xFF), (28, 0x00)],
        ids=["patched data", "strong encryption", "an offset outside", "no name"],
    )
    def test_a_hostile_directory_is_refused_and_not_an_error_of_ours(
        self, at: int, change: int, who: Principal
    ) -> None:
        packed = bytearray(zipped({"train.py": "print()"}).getvalue())
        packed[packed.rfind(b"PK\x01\x02") + at] = change
        assert refused(io.BytesIO(bytes(packed)), who)

    @pytest.mark.parametrize(
        ("pattern", "said"),
        [
            ("!", "line 2: '!' is not a pattern; correct"),
            ("[z-a]", "line 2: '[z-a]' is not"),
            ("*a" * 20 + "b", "has too many stars; use at most 4"),
            ("**/a/**/a/**/b", "has too many stars"),
        ],
    )
    def test_a_pattern_that_cannot_be_used_is_named(self, pattern: str, said: str, who: Principal) -> None:
        assert said in refused(zipped({".gitignore": f"# ***** \n{pattern}\n", "train.py": "1"}), who)

    def test_a_pattern_with_many_stars_in_a_comment_or_as_node_writes_it_is_fine(
        self, who: Principal
    ) -> None:
        ignore = "# * * * * * *\nreport.[0-9]*.[0-9]*.[0-9]*.[0-9]*.json\n"
        files = {".gitignore": ignore, "train.py": "1", "report.1.2.3.4.json": ""}
        assert snapshot(who, files).paths == (".gitignore", "train.py")

    def test_a_zip_above_the_limit_is_refused_before_it_is_read(
        self, who: Principal, settings: Settings
    ) -> None:
        settings.MAX_SNAPSHOT_BYTES = 2**20
        assert "the zip is larger than the 1 MiB allowed" in refused(io.BytesIO(b"x" * (2**20 + 1)), who)

    def test_the_zip64_format_is_refused(self, who: Principal) -> None:
        content = zipped({"train.py": "1"}).getvalue()
        end = content.rindex(b"PK\x05\x06")
        locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
        assert "Zip64" in refused(io.BytesIO(content[:end] + locator + content[end:]), who)

    def test_a_directory_above_the_limit_is_refused(self, who: Principal, settings: Settings) -> None:
        settings.MAX_SNAPSHOT_FILES = 10
        content = bytearray(zipped({"train.py": "1"}).getvalue())
        # The size of the directory lies 12 bytes behind the start of the end record.
        struct.pack_into("<L", content, content.rindex(b"PK\x05\x06") + 12, 2**21)
        assert "its list of files is larger than is allowed" in refused(io.BytesIO(bytes(content)), who)

    def test_another_packing_method_is_refused_with_the_name_of_the_file(self, who: Principal) -> None:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_BZIP2) as archive:
            archive.writestr("train.py", "print()")
        assert "'train.py' is packed by a method that is not supported" in refused(out, who)

    def test_a_large_ignore_file_is_refused(self, who: Principal) -> None:
        rules = "".join(f"data/{number}.bin\n" for number in range(80_000))
        assert ".trainhubignore is larger than 1 MiB" in refused(
            zipped({"train.py": "1", ".trainhubignore": rules}), who
        )

    def test_of_a_refused_source_nothing_stays(self, who: Principal) -> None:
        refused(with_entry("../evil.py"), who)
        assert not who.workspace.snapshots.exists()


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


def zipped_tight(files: dict[str, bytes]) -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return out
