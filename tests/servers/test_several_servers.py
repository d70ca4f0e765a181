"""Two web servers and two workers behind a proxy that sends each request to the next one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.platform.postgres import postgresql  # noqa: F401 - a fixture
from tests.servers.cluster import ServerCluster, running
from tests.servers.load import Load, kill_in_turn, submitting

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(
    postgresql: str,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ServerCluster]:
    with running(ServerCluster(tmp_path_factory.mktemp("servers"), postgresql)) as cluster:
        yield cluster


def under_load(cluster: ServerCluster, folder: Path, *, seconds: float, every_s: float) -> int:
    """Keeps runs and pages going while servers die. Returns how many were killed."""
    load = Load(cluster, folder / "starts")
    with submitting(load, every_s=3) as pages:
        killed = kill_in_turn(cluster, seconds, every_s)
    load.wait(120)
    load.check()
    for page in pages:
        shown, stored = page.close(), load.log(page.run_id)
        assert shown == stored, f"a page has a gap or a doubled line: {len(shown)} of {len(stored)} bytes"
    assert sum(page.live_bytes for page in pages) > 0
    assert sum(page.reconnects for page in pages) > 0
    return killed


def test_runs_complete_with_all_their_bytes(cluster: ServerCluster, tmp_path: Path) -> None:
    load = Load(cluster, tmp_path / "starts")
    for _ in range(4):
        load.submit(lines=100)
    load.wait(60)
    load.check()


def test_runs_and_pages_survive_servers_that_are_killed(cluster: ServerCluster, tmp_path: Path) -> None:
    assert under_load(cluster, tmp_path, seconds=16, every_s=8) >= 2


@pytest.mark.long
@pytest.mark.skipif(not os.environ.get("TRAINHUB_TEST_LONG"), reason="minutes; TRAINHUB_TEST_LONG=1 runs it")
def test_runs_and_pages_survive_them_for_long(cluster: ServerCluster, tmp_path: Path) -> None:
    seconds = float(os.environ.get("TRAINHUB_TEST_LONG_S", "120"))
    assert under_load(cluster, tmp_path, seconds=seconds, every_s=20) >= seconds / 40
