from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.bench import Hosts


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory, frameworks_python: str) -> Iterator[Hosts]:
    """Two hosts and their hub, shared by the session: leave them running."""
    settings = {
        # From where this hub may get what own environments are made of.
        "CONDA_CHANNEL_FOLDERS": str(tmp_path_factory.mktemp("channels")),
        "PACKAGE_INDEX_HOSTS": "127.0.0.1",
        "IMAGE_REGISTRY_HOSTS": "127.0.0.1",
    }
    built = Hosts(tmp_path_factory.mktemp("hosts"), frameworks_python, settings=settings)
    try:
        yield built.start()
    finally:
        built.stop()
