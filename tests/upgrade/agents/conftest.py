from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.bench import Hosts
from tests.upgrade.agents.upgrade_host import UpgradeHost


class UpgradeHosts(Hosts):
    host_type = UpgradeHost
    hosts: list[UpgradeHost]  # type: ignore[assignment]


@pytest.fixture
def older(tmp_path_factory: pytest.TempPathFactory, frameworks_python: str) -> Iterator[UpgradeHosts]:
    """Two hosts with agents of the version before, joined to a hub of this one."""
    built = UpgradeHosts(tmp_path_factory.mktemp("upgrades"), frameworks_python)
    try:
        built.start()
        yield built
    finally:
        built.stop()
