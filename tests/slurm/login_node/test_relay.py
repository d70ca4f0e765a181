"""Nodes that cannot reach the hub: traffic goes through the login node, and TLS is between node and hub."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hub import eventually
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hub import CLUSTER, PATIENCE_S
from tests.slurm.login import LoginHost
from tests.slurm.login_node.plain_hub import PlainHub
from tests.slurm.runs.test_runs import MEET

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]
PORT = 8443
ADDRESS = f"/api/v1/clusters/{CLUSTER}/"
RANK = "import os; print(os.environ['OMPI_COMM_WORLD_RANK'], 'on', os.uname().nodename, flush=True)"
# Says which hub the run is told of.
TELL = "import os; print(sorted(v for k, v in os.environ.items() if v.startswith('https://')), flush=True)"


class RelayedHub(PlainHub):
    @property
    def partition(self) -> dict[str, Any]:
        return {**super().partition, "relay_port": PORT}

    def start_relay(self) -> None:
        eventually(lambda: self.test()["relay"]["result"] == "ok", PATIENCE_S, "the relay stands")


@contextmanager
def _without_a_road(slurm: SlurmCluster) -> Iterator[None]:
    """No node reaches the hub's machine."""
    hub = f"{slurm.hub_address}/32"
    for machine in slurm.nodes.values():
        machine.run("ip", "route", "add", "blackhole", hub)
    try:
        yield
    finally:
        for machine in slurm.nodes.values():
            machine.run("ip", "route", "del", "blackhole", hub)


@pytest.fixture(scope="module")
def relayed_hub(
    login: LoginHost, slurm: SlurmCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RelayedHub]:
    settings = {"ALLOWED_HOSTS": login.machine.address}
    hub = RelayedHub(login, tmp_path_factory.mktemp("relayed hub"), settings)
    try:
        with _without_a_road(slurm):
            yield hub.start()
    finally:
        hub.stop()


def test_ranks_on_nodes_without_a_road_to_the_hub(relayed_hub: RelayedHub) -> None:
    relayed_hub.start_relay()
    run = relayed_hub.script(MEET, nodes=2, processes=2, resources={"gpus_per_node": 0})
    relayed_hub.completes(run)
    assert b"met [b'1']" in relayed_hub.runs.log(run, "70_driver_log_0.txt")
    told = relayed_hub.script(TELL)
    relayed_hub.completes(told)
    assert f"https://{relayed_hub.login.machine.address}:{PORT}".encode() in relayed_hub.runs.log(told)


def test_mpi_without_ssh(relayed_hub: RelayedHub) -> None:
    relayed_hub.start_relay()
    mpi = {"type": "mpi", "process_count_per_node": 1, "node_count": 2}
    run = relayed_hub.script(RANK, distribution=mpi, resources={"gpus_per_node": 0})
    relayed_hub.completes(run)
    said = [relayed_hub.runs.log(run, f"70_driver_log_{rank}.txt").split() for rank in range(2)]
    assert [words[0] for words in said] == [b"0", b"1"]
    assert len({words[2] for words in said}) == 2


def test_it_comes_back_by_itself(relayed_hub: RelayedHub) -> None:
    relayed_hub.start_relay()
    run = relayed_hub.script("import time; print('here', flush=True); time.sleep(40); print('end')")
    relayed_hub.starts(run)
    relayed_hub.login.block()
    try:
        eventually(lambda: _trouble(relayed_hub), PATIENCE_S, "its end is noted")
    finally:
        relayed_hub.login.unblock()
    relayed_hub.start_relay()
    relayed_hub.completes(run)
    os.kill(relayed_hub.hub.pid("worker"), signal.SIGKILL)
    eventually(lambda: not _sessions(relayed_hub), PATIENCE_S, "the relay ends with its worker")
    eventually(lambda: _sessions(relayed_hub), PATIENCE_S, "another worker has one")
    relayed_hub.start_relay()


def test_what_the_relay_lacks_is_said(relayed_hub: RelayedHub, tmp_path: Path) -> None:
    client = relayed_hub.runs.client
    for change, words in (
        ({"relay_host": "127.0.0.1"}, "has no permitlisten for it"),
        ({"relay_host": "login.example"}, "does not answer to the name login.example"),
    ):
        client.patch(ADDRESS, json={"slurm": change}).raise_for_status()
        _until_it_says(relayed_hub, words)
    client.patch(ADDRESS, json={"slurm": {"relay_host": "", "relay_port": 0}}).raise_for_status()
    assert "relay" not in relayed_hub.test()
    eventually(lambda: not _sessions(relayed_hub), PATIENCE_S, "nothing listens any more")


def _until_it_says(hub: RelayedHub, words: str) -> None:
    eventually(lambda: words in hub.test()["relay"]["sentence"], PATIENCE_S, words)


def _trouble(hub: RelayedHub) -> str:
    return str(hub.evaluate("SlurmPartition.objects.get().relay_trouble"))


def _sessions(hub: RelayedHub) -> list[str]:
    """What listens on the login node at the relay's port."""
    return hub.login.machine.run("ss", "-Hltn", f"sport = :{PORT}").stdout.splitlines()
