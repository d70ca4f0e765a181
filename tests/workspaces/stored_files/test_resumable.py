from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.tracking.artifacts.raw import limited_disk
from workspaces.stored_files import blob_sealer, blobs, resumable
from workspaces.stored_files.resumable import Part, append

# The same in every run: blobs lie in folders by the first digits of their digest, and a test makes `00`.
DATA = bytes(range(250)) * 120
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def part(tmp_path: Path, settings: Any) -> Part:
    settings.DATA_DIR = tmp_path
    return Part(tmp_path / "uploads" / f"{SHA256}.node-1", SHA256, len(DATA))


def left(part: Part) -> list[str]:
    return sorted(file.name for file in part.path.parent.iterdir())


def test_a_whole_file_becomes_a_blob_and_leaves_nothing_behind(part: Part) -> None:
    assert append(part, 0, DATA[:10_000]).stored == 10_000
    assert append(part, 10_000, DATA[10_000:]).stored == len(DATA)
    assert blobs.path(SHA256).read_bytes() == DATA
    assert blobs.path(SHA256).stat().st_mode & 0o777 == 0o400
    assert left(part) == []


def test_after_a_restart_it_goes_on_where_it_was_also_with_a_part_of_the_version_before(part: Part) -> None:
    part.path.parent.mkdir()
    part.path.write_bytes(DATA[:12_345])
    assert append(part, 12_345, DATA[12_345:20_000]).stored == 20_000
    assert append(part, 20_000, DATA[20_000:]).stored == len(DATA)
    assert blobs.path(SHA256).read_bytes() == DATA


def test_what_another_process_wrote_meanwhile_is_read_again(part: Part) -> None:
    append(part, 0, DATA[:10_000])
    part.path.write_bytes(b"x" * 10_000)
    with pytest.raises(blobs.BlobError):
        append(part, 10_000, DATA[10_000:])
    assert (blobs.exists(SHA256), left(part)) == (False, [])


def test_a_piece_at_another_offset_is_refused_with_the_right_one(part: Part) -> None:
    append(part, 0, DATA[:10])
    with pytest.raises(resumable.WrongOffset) as refused:
        append(part, 0, b"EVIL")
    assert refused.value.expected == 10


def test_of_two_requests_at_once_one_is_told_to_come_again(part: Part) -> None:
    with resumable._locked(part.path), pytest.raises(resumable.Busy):
        append(part, 0, DATA)
    assert append(part, 0, DATA).stored == len(DATA)


def test_of_many_threads_that_send_the_same_file_all_end_and_one_blob_stays(part: Part) -> None:
    ends: list[str] = []

    def send() -> None:
        try:
            ends.append(str(append(part, 0, DATA).stored))
        except resumable.Busy:
            ends.append("busy")

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(ends) == 20
    assert set(ends) <= {str(len(DATA)), "busy"}
    assert [file.name for file in (part.path.parent.parent / "blobs").rglob("*") if file.is_file()] == [
        SHA256
    ]


@pytest.mark.parametrize("held", [0, 10_000])
def test_on_a_full_disk_nothing_of_the_piece_stays_and_the_upload_goes_on_later(
    part: Part, held: int
) -> None:
    if held:
        append(part, 0, DATA[:held])
    with limited_disk(15_000), pytest.raises(OSError, match="File too large"):
        append(part, held, DATA[held:])
    assert (resumable.stored_bytes(part.path), blobs.exists(SHA256)) == (held, False)
    assert append(part, held, DATA[held:]).stored == len(DATA)
    assert blobs.path(SHA256).read_bytes() == DATA


def test_of_very_many_uploads_the_oldest_are_hashed_again_at_their_end(
    part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable, "MAX_HASHES", 2)
    others = [Part(part.path.with_name(f"{SHA256}.{number}"), SHA256, len(DATA)) for number in range(5)]
    for item in (part, *others):
        append(item, 0, DATA[:10])
    assert len(resumable._hashes) <= 2
    assert append(part, 10, DATA[10:]).stored == len(DATA)
    assert blobs.exists(SHA256)


def test_forgotten_parts_go_and_one_that_is_written_to_stays(part: Part) -> None:
    other = Part(part.path.with_name(f"{SHA256}.node-2"), SHA256, len(DATA))
    for item in (part, other):
        append(item, 0, DATA[:10])
        os.utime(item.path, (1, 1))
    with resumable._locked(other.path):
        assert resumable.remove_forgotten(part.path.parent, 1000.0) == 1
    assert left(part) == [other.path.name, f"{other.path.name}.lock"]


class TestSealing:
    def test_files_of_earlier_versions_become_read_only_once_and_are_swept_all_the_same(
        self, part: Part, caplog: pytest.LogCaptureFixture
    ) -> None:
        append(part, 0, DATA)
        old = blobs.path("0" * 64)
        old.parent.mkdir()
        old.write_bytes(b"of an earlier version")
        half = blobs.part_path()
        half.write_bytes(b"half")
        assert blob_sealer.seal_old() == 1
        assert "1 stored files of an earlier version" in caplog.text
        assert old.stat().st_mode & 0o777 == 0o400
        assert half.stat().st_mode & 0o200
        old.chmod(0o600)
        assert blob_sealer.seal_old() == 0
        old.chmod(0o400)
        os.utime(old, (1, 1))
        assert old in set(blobs.unkept_since(1000.0))
        assert blobs.drop(old, unkept_since=1000.0) == 21
