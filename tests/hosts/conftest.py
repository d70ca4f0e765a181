from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.bench import Hosts


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory, frameworks_python: str) -> Iterator[Hosts]:
    """Two hosts and their hub, shared by the session: leave them running."""
    built = Hosts(tmp_path_factory.mktemp("hosts"), frameworks_python)
    try:
        yield built.start()
    finally:
        built.stop()
