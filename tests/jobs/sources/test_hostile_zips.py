from __future__ import annotations

import io
import stat
import struct
import zipfile

import pytest
from pytest_django import Settings

from tests.jobs.builders import snapshot, zipped
from tests.jobs.sources.refused_zips import refused, with_entry
from workspaces.access import Principal

pytestmark = pytest.mark.django_db


def zipped_tight(files: dict[str, bytes]) -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return out


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
