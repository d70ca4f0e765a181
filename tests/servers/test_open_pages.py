"""What people have open in their browsers while servers die."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.servers.cluster import ServerCluster
from tests.servers.load import Load, check_afterwards, kill_in_turn, submitting
from tests.servers.open_pages import OpenPages

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@contextmanager
def open_pages(browser: Any, cluster: ServerCluster, load: Load) -> Iterator[OpenPages]:
    pages = OpenPages(browser, cluster, load)
    try:
        yield pages
    finally:
        pages.close()


def test_open_pages_go_on_without_a_reload(browser: Any, cluster: ServerCluster, tmp_path: Path) -> None:
    load = Load(cluster, tmp_path / "starts")
    with open_pages(browser, cluster, load) as pages:
        kill_in_turn(cluster, 3, 1, pages.check_going_on)
        load.end_all()
        load.wait(60)
        pages.check_whole()
    load.check()


@pytest.mark.long
@pytest.mark.skipif(not os.environ.get("TRAINHUB_TEST_LONG"), reason="minutes; TRAINHUB_TEST_LONG=1 runs it")
def test_runs_and_pages_survive_them_for_long(browser: Any, cluster: ServerCluster, tmp_path: Path) -> None:
    # Another one dies every 20 s: thirty times takes ten minutes.
    times, every_s = int(os.environ.get("TRAINHUB_TEST_SERVER_DEATHS", "6")), 20
    load = Load(cluster, tmp_path / "starts")
    with open_pages(browser, cluster, load) as pages:
        with submitting(load, every_s=3) as followers:
            kill_in_turn(cluster, times, every_s, pages.check_going_on)
        load.end_all()
        check_afterwards(load, followers)
        pages.check_whole()
