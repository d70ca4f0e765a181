from __future__ import annotations

import random
import time
import zipfile

from tests.jobs.builders import snapshot
from tracking.comparison.differences import sources
from tracking.comparison.differences.sources import SourceDifference, compare_snapshots
from workspaces.access import Principal
from workspaces.stored_files import blobs


def compared(who: Principal, old: dict[str, str | bytes], new: dict[str, str | bytes]) -> SourceDifference:
    common: dict[str, str | bytes] = {"train.py": "print('hello')\n"}
    return compare_snapshots(snapshot(who, common | old).sha256, snapshot(who, common | new).sha256)


def listed(difference: SourceDifference) -> list[tuple[str, str]]:
    return [(file.path, file.kind) for file in difference.files]


class TestFiles:
    def test_are_added_removed_changed_or_alike(self, who: Principal) -> None:
        difference = compared(who, {"a.py": "1\n", "b.py": "1\n"}, {"a.py": "2\n", "c.py": "new\n"})
        assert listed(difference) == [("a.py", "changed"), ("b.py", "removed"), ("c.py", "added")]
        assert difference.alike == 1

    def test_in_another_order_are_the_same(self, who: Principal) -> None:
        assert compared(who, {"a.py": "1\n", "b.py": "2\n"}, {"b.py": "2\n", "a.py": "1\n"}).is_same

    def test_that_are_only_called_otherwise_are_renamed(self, who: Principal) -> None:
        difference = compared(who, {"old.py": "body\n"}, {"new/name.py": "body\n"})
        assert [(file.path, file.renamed_from, file.kind) for file in difference.files] == [
            ("new/name.py", "old.py", "renamed")
        ]

    def test_that_are_no_text_are_not_shown_as_one(self, who: Principal) -> None:
        difference = compared(
            who, {"a.bin": b"\0\1", "b.txt": b"\xff\xfe"}, {"a.bin": b"\0\2", "b.txt": b"\xff\xfd"}
        )
        assert [(file.why, file.hunks) for file in difference.files] == [("not a text", None)] * 2

    def test_that_are_large_are_only_said_to_differ(self, who: Principal) -> None:
        noise = random.Random(1).randbytes(sources.MAX_FILE_BYTES).hex()  # noqa: S311
        difference = compared(who, {"data.csv": noise}, {"data.csv": noise + "\n"})
        assert [(file.kind, file.why) for file in difference.files] == [
            ("changed", "too large to compare line by line")
        ]

    def test_without_a_line_are_called_empty(self, who: Principal) -> None:
        assert [file.why for file in compared(who, {}, {"__init__.py": ""}).files] == ["empty"]


class TestBounds:
    def test_more_lines_than_anybody_reads_are_left_out(self, who: Principal) -> None:
        difference = compared(who, {}, {f"{number}.py": "line\n" * 1500 for number in range(8)})
        line_counts = [
            sum(len(hunk.lines) for hunk in file.hunks.hunks) if file.hunks else 0
            for file in difference.files
        ]
        assert line_counts == [1000] * 4 + [0] * 4
        assert [file.why for file in difference.files[4:]] == [
            "not compared: there is too much before it"
        ] * 4

    def test_more_files_than_anybody_reads_are_counted(self, who: Principal) -> None:
        difference = compared(who, {}, {f"{number}.txt": "" for number in range(sources.MAX_FILES + 20)})
        assert (len(difference.files), difference.omitted) == (sources.MAX_FILES, 20)

    def test_after_the_time_is_up_files_are_only_listed(self, who: Principal) -> None:
        old, new = snapshot(who, {"a.py": "1\n"}), snapshot(who, {"a.py": "2\n"})
        difference = compare_snapshots(old.sha256, new.sha256, deadline=time.monotonic() - 1)
        assert [(file.path, file.hunks) for file in difference.files] == [("a.py", None)]

    def test_a_source_that_is_no_longer_there_is_said_to_be_gone(self, who: Principal) -> None:
        old, new = snapshot(who, {"a.py": "1\n"}), snapshot(who, {"a.py": "2\n"})
        blobs.path(new.sha256).unlink()
        assert compare_snapshots(old.sha256, new.sha256).missing_side == "this run"

    def test_a_file_whose_bytes_are_spoilt_is_listed_without_its_lines(self, who: Principal) -> None:
        old, new = snapshot(who, {"a.py": "one\n", "b.py": "1\n"}), snapshot(who, {"a.py": "two\n"})
        archive = blobs.path(new.sha256)
        with zipfile.ZipFile(archive) as source:
            info = source.getinfo("a.py")
        content = bytearray(archive.read_bytes())
        # The bytes of a member follow its header of 30 bytes and its name.
        start = info.header_offset + 30 + len(info.filename)
        content[start : start + info.compress_size] = bytes(info.compress_size)
        archive.chmod(0o600)
        archive.write_bytes(content)
        difference = compare_snapshots(old.sha256, new.sha256)
        assert [(file.path, file.kind, file.why) for file in difference.files] == [
            ("a.py", "changed", "can no longer be read"),
            ("b.py", "removed", ""),
        ]


def test_the_same_source_is_not_even_opened() -> None:
    assert compare_snapshots("0" * 64, "0" * 64).is_same
