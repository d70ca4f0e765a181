"""Hosts that reach nothing but the hub, each with its own caches and an engine for containers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hosts.bench import Host, Hosts
from tests.hosts.wiring import ip
from tests.hub import eventually
from tests.node.containers.images import CONFIGURATION, STORAGE

# As the host sees it. Its /tmp is its own.
ENGINE = "/tmp/engine"
SETTINGS = {
    # That of the other hosts is shared by all of them.
    "TRAINHUB_NODE_CACHE": "/tmp/cache",
    "TRAINHUB_NODE_CONTAINERS": "podman",
    "CONTAINERS_CONF": f"{ENGINE}/containers.conf",
    "CONTAINERS_STORAGE_CONF": f"{ENGINE}/storage.conf",
    # A folder of this machine, which a host of its own would not have.
    "PIP_FIND_LINKS": "",
}


@contextmanager
def lonely_hosts(hosts: Hosts) -> Iterator[Hosts]:
    """Takes from the hosts every route but that to the hub, and gives their agents an engine and empty
    caches. At the end they are as before."""
    before = {host.name: dict(host.settings) for host in hosts.hosts}
    gateway = hosts.bridge.hub_address
    try:
        for host in hosts.hosts:
            ip("-n", hosts.bridge.namespace(host.name), "route", "del", "default")
            _add_engine(host)
            _restart_agent(host, {**host.settings, **SETTINGS})
        for host in hosts.hosts:
            _await_engine(hosts, host)
        yield hosts
    finally:
        for host in hosts.hosts:
            _restart_agent(host, before[host.name])
            host.run("umount", "-R", "/sys/fs/cgroup")
            ip("-n", hosts.bridge.namespace(host.name), "route", "add", "default", "via", gateway)
        for host in hosts.hosts:
            hosts.until(host, "ready")


def _add_engine(host: Host) -> None:
    folder = host.folder / Path(ENGINE).name
    folder.mkdir()
    (folder / "containers.conf").write_text(CONFIGURATION)
    (folder / "storage.conf").write_text(STORAGE.format(folder=ENGINE))
    # `ip netns exec` mounts /sys anew, and engines need control groups.
    host.run("sh", "-ec", "\n".join(_mount_commands()))


def _mount_commands() -> Iterator[str]:
    """Yields commands that mount the control groups as this machine has them."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, (kind, _, options, *_) = (part.split() for part in line.partition(" - "))
        if not fields[4].startswith("/sys/fs/cgroup"):
            continue
        shown = ",".join(item for item in options.split(",") if item != "rw")
        yield f"mkdir -p {fields[4]}"
        yield f"mount -t {kind} {f'-o {shown}' if shown else ''} {kind} {fields[4]}"


def _restart_agent(host: Host, settings: dict[str, str]) -> None:
    pid = host.agent_pid()
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: not Path(f"/proc/{pid}").exists(), 30, f"the agent of {host.name} ends")
    host.settings = settings
    host.start_agent()


def _await_engine(hosts: Hosts, host: Host) -> None:
    def works() -> bool:
        return "containers" in hosts.runs.get(f"/nodes/{host.name}/")["capabilities"]

    eventually(works, 60, f"{host.name} has an engine that works")
