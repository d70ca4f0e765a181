"""Several nodes download the same files: each byte leaves the store about once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.builders import launched, node
from tests.node.data.peers.swarm import SwarmNode, download_of, hub_routes, parts_of, written_list
from tests.people import make_contributor, principal_of
from tests.stores.s3_server import BUCKET, S3Server
from trainhub_node.data.part_file import PIECE_BYTES

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey"), pytest.mark.slow]
DISTRIBUTION = {"type": "pytorch", "communication_backend": "gloo", "process_count": 3, "node_count": 3}
FILES = {
    **{f"small/{number:04d}.bin": os.urandom(20_000 + number) for number in range(1500)},
    "large/a.bin": os.urandom(5 * PIECE_BYTES + 321),
    "large/b.bin": os.urandom(2 * PIECE_BYTES),
    "large/exact.bin": os.urandom(PIECE_BYTES),
    "empty.bin": b"",
}
TOTAL = sum(map(len, FILES.values()))


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server()
    server.objects[BUCKET] = dict(FILES)
    yield server
    server.close()


@pytest.fixture
def swarm(tmp_path: Path) -> Iterator[list[SwarmNode]]:
    for name in ("alpha", "beta", "gamma"):
        node(name)
    run = launched(principal_of(make_contributor()), distribution=DISTRIBUTION)
    with hub_routes() as hub:
        nodes = [SwarmNode(hub, tmp_path, part) for part in parts_of(run)]
        for member in nodes:
            member.serve()
        yield nodes
        for member in nodes:
            member.close()


def test_each_byte_leaves_the_store_once(server: S3Server, swarm: list[SwarmNode], tmp_path: Path) -> None:
    listed, download = written_list(tmp_path / "list", server), download_of(server)
    server.rate = 30e6
    fetches = [member.fetch(download, listed, server) for member in swarm]
    results = [fetch.done() for fetch in fetches]
    print(results, server.sent / TOTAL)
    assert all(fetch.files() == FILES for fetch in fetches)
    assert server.sent <= 1.05 * TOTAL
