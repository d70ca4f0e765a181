"""S1: while the root agent unpacks a run's source, a process of the runs' account exchanges folders for
links."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.attacks.node.runner import hostile_process, needs_root, nobody, owners
from trainhub_node.launch import unpack

pytestmark = needs_root
FOLDERS, FILES, TRIES = 30, 8, 10


def source_with_names_of(victim: Path, folder: Path) -> Path:
    archive = folder / "source.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for number in range(FOLDERS):
            for path in victim.iterdir():
                zipped.writestr(f"d{number:02}/{path.name}", b"x")
    return archive


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of root's, as /etc is, with file names that the attacker knows."""
    made = tmp_path.parent / f"{tmp_path.name}-victim"
    made.mkdir(mode=0o755)
    for number in range(FILES):
        (made / f"secret{number:02}").touch(mode=0o600)
    return made


def test_no_file_outside_is_given_away_while_a_source_is_unpacked(victim: Path, open_folder: Path) -> None:
    """S1. The unpacked folder was given away before its content, so that links in it led root's chown
    anywhere."""
    archive = source_with_names_of(victim, open_folder)
    part = open_folder / "work.part"

    def exchange_folders() -> None:
        for number in range(FOLDERS):
            try:
                (part / f"d{number:02}").rename(part / f"x{number:02}")
                (part / f"d{number:02}").symlink_to(victim)
            except OSError:
                continue

    with hostile_process(nobody(), exchange_folders):
        for number in range(TRIES):
            work = open_folder / "work"
            try:
                unpack.unpack_snapshot(archive, work, nobody())
            except (OSError, unpack.BadSnapshot):
                continue
            finally:
                for left in (work, part):
                    if left.exists():
                        left.rename(open_folder / f"{left.name}-{number}")
    assert owners(victim) == {0}


def test_the_unpacked_folder_belongs_to_the_account_in_full(victim: Path, open_folder: Path) -> None:
    archive = source_with_names_of(victim, open_folder)
    work = open_folder / "work"

    assert unpack.unpack_snapshot(archive, work, nobody()) == FOLDERS * FILES

    assert owners(work) | {work.stat().st_uid} == {nobody().uid}
    assert {oct(path.stat().st_mode & 0o777) for path in work.rglob("*")} == {"0o600", "0o700"}
