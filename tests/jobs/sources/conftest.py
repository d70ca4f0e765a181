from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.environments.source_builds.git_server import GitServer


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with GitServer(tmp_path_factory.mktemp("repositories")).serving() as server:
        yield server
