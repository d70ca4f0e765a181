"""Source zips: what the list of files says is not believed, and reading it is bounded."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from jobs.sources import zips
from jobs.sources.source_files import SnapshotError
from tests.attacks.parsers.bounds import bounded

ENTRY = struct.Struct("<4s6H3L5H2L")


def many_entries(count: int, declared: int) -> bytes:
    """A zip whose list has `count` entries of the smallest size, and says that it has `declared`."""
    names = [f"{number:x}".encode() for number in range(count)]
    directory = b"".join(
        ENTRY.pack(b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0) + name
        for name in names
    )
    return directory + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, declared, declared, len(directory), 0, 0)


def refused(data: bytes) -> bool:
    try:
        zips.read_zip(io.BytesIO(data))
    except SnapshotError:
        return True
    return False


@pytest.mark.parametrize(("count", "declared"), [(120_000, 1), (120_000, 65_535), (1, 65_535)])
def test_a_list_with_more_files_than_it_says_is_refused_within_the_limits(count: int, declared: int) -> None:
    data = many_entries(count, declared)
    assert bounded(lambda: refused(data))


@pytest.mark.parametrize("depth", [10, 2000])
def test_long_and_deep_names_are_refused_within_the_limits(depth: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(500):
            archive.writestr("/".join(["d"] * depth) + f"/{'n' * 200}{number}", "")
    bounded(lambda: refused(out.getvalue()))


def test_an_ignore_file_with_many_patterns_on_many_files_keeps_to_its_time() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(".trainhubignore", "".join(f"*a*a*a*{number}\n" for number in range(60)))
        for number in range(60):
            archive.writestr("a" * 120 + str(number), "")
    bounded(lambda: refused(out.getvalue()), max_cpu_s=25)
