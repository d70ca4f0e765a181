from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.caching import CACHE
from tests.hosts.bench import Hosts


@pytest.fixture(scope="module")
def apart(hosts: Hosts) -> Iterator[Hosts]:
    """The hosts, each with a cache of data of its own, which is empty."""
    place = str(CACHE / "node" / "data")
    Path(place).mkdir(parents=True, exist_ok=True)
    for host in hosts.hosts:
        host.run("mkdir", "-p", "/tmp/data")
        host.run("mount", "--bind", "/tmp/data", place)
    yield hosts
    for host in hosts.hosts:
        host.run("umount", "--lazy", place)
        host.run("rm", "-r", "/tmp/data")
