from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.caching import CACHE
from tests.hosts.bench import Host, Hosts
from tests.hub import eventually


@pytest.fixture(scope="module")
def apart(hosts: Hosts) -> Iterator[Hosts]:
    """The hosts, each with an empty cache of data."""
    place = str(CACHE / "node" / "data")
    for host in hosts.hosts:
        host.run("mkdir", "-p", "/tmp/data")
        host.run("mount", "--bind", "/tmp/data", place)
    for host in hosts.hosts:
        eventually(partial(has_no_data, hosts, host), 30, f"{host.name} tells that its cache is empty")
    yield hosts
    for host in hosts.hosts:
        host.run("umount", "--lazy", place)
        host.run("rm", "-r", "/tmp/data")


def has_no_data(hosts: Hosts, host: Host) -> bool:
    return not hosts.runs.client.get(f"/api/v1/nodes/{host.name}/").json()["data_lists"]
