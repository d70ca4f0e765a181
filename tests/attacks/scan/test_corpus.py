"""S13: the scan said "clean" of what it did not look at. Every file of the corpus gets exactly its
verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.scanning.file_scan import verdict_for_file
from registry.scanning.verdict_names import CLEAN, DANGEROUS, ORDER
from tests.attacks.scan.builders import zipped
from tests.attacks.scan.corpus import CASES, Case

COMPLETE_WHEN_CUT = (".txt", ".yaml", ".md", "MLmodel", "a.tar")
"""Half of a text is a text, and half of two tars in one file is one tar."""


def case_id(case: Case) -> str:
    return f"{case.verdict}-{case.about}-{case.name}".replace(" ", "_").replace("/", "-")


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_a_file_gets_its_verdict(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(case.data)
    found = verdict_for_file(file, case.name)
    assert found.verdict == case.verdict, found
    # A page that warns must be able to say of what.
    assert found.verdict == CLEAN or found.note or found.findings


def test_the_corpus_is_large_and_has_files_of_every_verdict() -> None:
    counts = {verdict: sum(case.verdict == verdict for case in CASES) for verdict in ORDER}
    assert len(CASES) >= 60
    assert min(counts.values()) >= 20, counts


@pytest.mark.parametrize("case", [case for case in CASES if case.verdict == DANGEROUS], ids=case_id)
def test_an_archive_around_a_dangerous_file_hides_nothing(case: Case, tmp_path: Path) -> None:
    """In a zip among harmless files the file is still found, under whatever name it has there."""
    file = tmp_path / "file"
    file.write_bytes(_zip_with(case))
    assert verdict_for_file(file, "model.zip").verdict == DANGEROUS


@pytest.mark.parametrize("case", [case for case in CASES if case.verdict != CLEAN], ids=case_id)
def test_a_file_that_is_cut_off_anywhere_is_never_clean_for_being_short(case: Case, tmp_path: Path) -> None:
    """Half of a bad file may be harmless, but must then be complete in some other format, or be told as not
    looked at."""
    file = tmp_path / "file"
    for share in (0.5, 0.9):
        file.write_bytes(case.data[: max(int(len(case.data) * share), 1)])
        found = verdict_for_file(file, case.name)
        assert found.verdict != CLEAN or case.name.endswith(COMPLETE_WHEN_CUT), (share, found)


def _zip_with(case: Case) -> bytes:
    return zipped({"notes.txt": b"harmless", f"deep/{case.name}": case.data})
