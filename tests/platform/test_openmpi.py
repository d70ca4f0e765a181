from __future__ import annotations

from pathlib import Path

import pytest

from tests import openmpi
from tests.hub import PROJECT


def test_a_missing_mpirun_fails_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match=r"run \.ci/system-packages"):
        openmpi.require()


def test_nothing_is_skipped_for_want_of_mpirun() -> None:
    skipping = [
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "tests").rglob("test_*.py")
        if any("skipif" in line and "mpirun" in line for line in path.read_text().splitlines())
        and path != Path(__file__)
    ]
    assert skipping == []
