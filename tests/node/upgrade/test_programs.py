"""The folders of programs on a node."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from trainhub_node.upgrade.program_record import ProgramRecord, read_record, write_record
from trainhub_node.upgrade.programs import (
    MAIN,
    UnusableArchive,
    has_program,
    install_program,
    sweep_programs,
)


def archive(to: Path, *members: tuple[str, bytes, bytes], main: bool = True) -> Path:
    """`members`: name, type and content."""
    with tarfile.open(to, "w:gz") as files:
        plain = [(MAIN, tarfile.REGTYPE, b"print(1)\n")] if main else []
        for name, kind, content in (*plain, *members):
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(content)
            member.linkname = "/etc/passwd" if kind != tarfile.REGTYPE else ""
            member.mode = 0o777
            files.addfile(member, io.BytesIO(content))
    return to


def test_a_program_is_installed_whole_compiled_and_closed_to_other_accounts(tmp_path: Path) -> None:
    packed = archive(tmp_path / "archive", ("bin/uv", tarfile.REGTYPE, b"#!/bin/sh\n"))
    install_program(tmp_path, packed, "1.0-abc")
    assert has_program(tmp_path, "1.0-abc")
    assert (tmp_path / "1.0-abc/trainhub_node/__pycache__").is_dir()
    for path in (tmp_path / "1.0-abc").rglob("*"):
        assert not path.stat().st_mode & 0o022, path
        assert path.stat().st_mode & 0o004, path
    # The same order again replaces it.
    install_program(tmp_path, packed, "1.0-abc")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.0-abc", "archive"]


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (("../outside", tarfile.REGTYPE, b"x"), "leads elsewhere"),
        (("/outside", tarfile.REGTYPE, b"x"), "leads elsewhere"),
        (("a/../../outside", tarfile.REGTYPE, b"x"), "leads elsewhere"),
        (("link", tarfile.SYMTYPE, b""), "is no file"),
        (("link", tarfile.LNKTYPE, b""), "is no file"),
        (("pipe", tarfile.FIFOTYPE, b""), "is no file"),
        (("device", tarfile.CHRTYPE, b""), "is no file"),
    ],
)
def test_an_archive_that_leads_elsewhere_is_unusable(
    tmp_path: Path, member: tuple[str, bytes, bytes], reason: str
) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    with pytest.raises(UnusableArchive, match=reason):
        install_program(folder, archive(tmp_path / "archive", member), "1.0-abc")
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "outside").exists()


def test_an_archive_without_the_program_or_cut_off_is_unusable(tmp_path: Path) -> None:
    empty = archive(tmp_path / "empty", main=False)
    with pytest.raises(UnusableArchive, match="no node program"):
        install_program(tmp_path, empty, "1.0-abc")
    whole = archive(tmp_path / "archive", ("big", tarfile.REGTYPE, bytes(range(256)) * 4096)).read_bytes()
    (tmp_path / "archive").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnusableArchive, match="cannot be unpacked"):
        install_program(tmp_path, tmp_path / "archive", "1.0-abc")
    assert not has_program(tmp_path, "1.0-abc")


def test_what_nothing_uses_is_removed(tmp_path: Path) -> None:
    for name in ("current", "previous", "unused", "used", ".new-half"):
        (tmp_path / name).mkdir()
    script = tmp_path / "used" / "child.py"
    script.write_text("import sys; print(flush=True); sys.stdin.read()")
    child = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    record = ProgramRecord(current="current", previous="previous", outcome="done")
    try:
        sweep_programs(tmp_path, record)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["current", "previous", "used"]
    finally:
        child.communicate()
    sweep_programs(tmp_path, record)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current", "previous"]


def test_a_record_survives_and_one_that_others_could_write_does_not_count(tmp_path: Path) -> None:
    record = ProgramRecord(current="1.0-abc", order=3, why="Ä")
    write_record(tmp_path, record)
    assert read_record(tmp_path) == record
    (tmp_path / "record.json").chmod(0o666)
    assert read_record(tmp_path) == ProgramRecord()
    (tmp_path / "record.json").chmod(0o600)
    tmp_path.chmod(0o777)
    assert read_record(tmp_path) == ProgramRecord()
    assert not has_program(tmp_path, "1.0-abc")
    tmp_path.chmod(0o755)
    for text in ("", "[]", '{"current": ', '{"current": 5, "order": true}'):
        (tmp_path / "record.json").write_text(text)
        assert read_record(tmp_path) == ProgramRecord()
    (tmp_path / "record.json").write_text('{"current": "2.0-d", "field_of_later": {}}')
    assert read_record(tmp_path) == ProgramRecord(current="2.0-d")
