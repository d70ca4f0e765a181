"""Docker's daemon for tests: with data, a socket and settings of its own, and without a network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness import guard
from tests.node.containers.images import NAME, PrivateEngine, image_environment
from trainhub_launch.order import EnvironmentSpec

READY_S = 30.0
SOCKET = "docker.sock"
NETWORK = "exec/netns/default"


class Docker(PrivateEngine):
    name = "docker"

    def __init__(self, folder: Path) -> None:
        variables = {"DOCKER_HOST": f"unix://{folder}/{SOCKET}", "DOCKER_CONFIG": str(folder / "client")}
        super().__init__(folder, variables)

    def environment(self, name: str = NAME) -> EnvironmentSpec:
        # An image that no registry has seen has no digest in Docker, only its identifier.
        identifier = self("image", "inspect", "--format={{.Id}}", name).strip()
        return image_environment(name, identifier, identifier)


@contextmanager
def private_docker(folder: Path) -> Iterator[Docker]:
    """Docker with a daemon of its own; what it holds is removed at the end."""
    if os.geteuid() != 0:
        pytest.skip("docker needs root")
    assert shutil.which("dockerd"), "docker is missing: run .ci/system-packages"
    guard.on_exit("umount", "-l", f"{folder}/{NETWORK}")
    guard.on_exit("rm", "-rf", str(folder))
    settings = {
        "hosts": [f"unix://{folder}/{SOCKET}"],
        "data-root": f"{folder}/data",
        "exec-root": f"{folder}/exec",
        "pidfile": f"{folder}/docker.pid",
        "storage-driver": "overlay2",
        # Nothing of the machine's network is changed; containers of runs have the machine's own.
        "bridge": "none",
        "iptables": False,
        "ip-forward": False,
        "ip-masq": False,
    }
    (folder / "daemon.json").write_text(json.dumps(settings))
    with (folder / "daemon.log").open("wb") as log:
        daemon = subprocess.Popen(
            ["dockerd", f"--config-file={folder}/daemon.json"], stdout=log, stderr=log, start_new_session=True
        )
    docker = Docker(folder)
    try:
        deadline = time.monotonic() + READY_S
        while not (folder / SOCKET).is_socket():
            assert daemon.poll() is None, (folder / "daemon.log").read_text()
            assert time.monotonic() < deadline, (folder / "daemon.log").read_text()
            time.sleep(0.02)
        yield docker
        if names := docker.containers():
            docker("rm", "--force", *names)
    finally:
        daemon.terminate()
        daemon.wait(READY_S)
        # The daemon leaves the network of its containers mounted.
        subprocess.run(["umount", f"{folder}/{NETWORK}"], check=False)
        shutil.rmtree(folder)
