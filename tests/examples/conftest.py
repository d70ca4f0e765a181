from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.hub import Hub
from tests.journeys.runs import Runs

collect_ignore = [] if os.environ.get("TRAINHUB_TEST_CURATED") else ["test_every_curated.py"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory, frameworks_python: str) -> Iterator[Runs]:
    """Runs of a hub whose node has all frameworks in its own interpreter, so that none waits for pip."""
    hub = Hub(tmp_path_factory.mktemp("frameworks") / "data", TRAINHUB_NODE_PYTHON=frameworks_python)
    try:
        yield Runs(hub.start())
        hub.cancel_all()
    finally:
        hub.stop()
