"""Hosts of one run, and later ones, take the files of a dataset from each other."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.hosts.data.peer_hosts import PeerHosts, StoredFiles
from tests.hub import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
FILES = StoredFiles(8801, 3, 30_000_000)
TOTAL = FILES.number * FILES.size
# Headers of packets, and what is read twice.
MOST = 1.06 * 1.1 * TOTAL


@pytest.fixture
def peers(tmp_path_factory: pytest.TempPathFactory, frameworks_python: str) -> Iterator[PeerHosts]:
    built = PeerHosts(tmp_path_factory.mktemp("peers"), frameworks_python, nodes=3, mbit=100)
    try:
        built.start()
        yield built
    finally:
        built.stop()


def test_the_store_sends_each_byte_about_once(peers: PeerHosts) -> None:
    peers.add_dataset("birds", FILES)
    trained = peers.train("birds", 2)
    assert trained.detail["state"] == "Completed", (trained.detail["sentence"], trained.preparation)
    assert trained.logs == [f"rank {rank} reads {FILES.digest}\n" for rank in range(2)]
    assert TOTAL <= trained.sent <= MOST, trained.preparation
    assert all("GB from node" in text for text in trained.preparation)
    # One of three has nothing yet; it needs the store for next to nothing.
    later = peers.train("birds", 3)
    assert later.detail["state"] == "Completed", (later.detail["sentence"], later.preparation)
    assert later.logs == [f"rank {rank} reads {FILES.digest}\n" for rank in range(3)]
    assert later.sent < 0.05 * TOTAL, later.preparation


# tests/node/data/peers/test_exchange.py kills the process that serves.
@pytest.mark.long
def test_an_agent_that_is_killed_while_it_serves_others_does_not_matter(peers: PeerHosts) -> None:
    """With the process that serves, in the middle of the download."""
    begin, host = peers.sent(), peers.hosts[1]

    def kill() -> None:
        eventually(lambda: peers.sent() - begin > TOTAL // 3, 120, "the store sends")
        server = host.pid_of("bootstrap.py peers")
        host.kill_agent()
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
        host.start_agent()

    peers.add_dataset("finches", FILES)
    trained = peers.train("finches", 2, kill)
    assert trained.detail["state"] == "Completed", (trained.detail["sentence"], trained.preparation)
    assert trained.logs == [f"rank {rank} reads {FILES.digest}\n" for rank in range(2)]
