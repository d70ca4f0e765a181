from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environments.package_index import PackageIndex
from tests.people import make_contributor, principal_of
from workspaces.access import Principal


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """The only index that pip, and with it the hub, is configured to use."""
    folder = tmp_path / "index"
    folder.mkdir()
    with PackageIndex(folder).serving() as served:
        # Without the files in which this machine's own indexes may stand.
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", served.url)
        for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT"):
            monkeypatch.delenv(name, raising=False)
        yield served
