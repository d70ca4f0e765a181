from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.platform.postgres import postgresql  # noqa: F401 - a fixture
from tests.servers.cluster import ServerCluster, running


@pytest.fixture(scope="module")
def cluster(
    postgresql: str,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ServerCluster]:
    """Two servers and two nodes; leave both servers running."""
    with running(ServerCluster(tmp_path_factory.mktemp("servers"), postgresql)) as cluster:
        yield cluster
