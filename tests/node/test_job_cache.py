from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainhub_node.job_cache import open_cache


def test_the_next_job_has_what_the_last_one_kept(tmp_path: Path) -> None:
    with open_cache(str(tmp_path)) as first:
        assert first == tmp_path / str(os.geteuid()) / "cache"
    with open_cache(str(tmp_path)) as second:
        assert second == first


def test_of_two_jobs_at_once_one_has_it(tmp_path: Path) -> None:
    with open_cache(str(tmp_path)) as first, open_cache(str(tmp_path)) as second:
        assert first is not None
        assert second is None


def test_without_a_place_there_is_none() -> None:
    with open_cache("") as cache:
        assert cache is None


@pytest.mark.parametrize("trap", ["link", "open", "file", "missing"])
def test_a_folder_that_is_not_this_accounts_alone_is_not_used(
    tmp_path: Path, trap: str, caplog: pytest.LogCaptureFixture
) -> None:
    place, own = tmp_path / "place", tmp_path / "place" / str(os.geteuid())
    if trap != "missing":
        place.mkdir()
    if trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        own.symlink_to(tmp_path / "elsewhere")
    if trap == "open":
        own.mkdir()
        own.chmod(0o777)
    if trap == "file":
        own.touch()
    with open_cache(str(place)) as cache:
        assert cache is None
    assert "Nothing is kept for later jobs of this account" in caplog.text
