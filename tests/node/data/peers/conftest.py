"""A store with some files, and three nodes of one run that all need them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.jobs.builders import launched, node
from tests.node.data.peers.swarm import Swarm, SwarmNode, hub_routes, parts_of
from tests.people import make_contributor, principal_of
from tests.stores.s3_server import BUCKET, S3Server
from trainhub_node.data.part_file import PIECE_BYTES

DISTRIBUTION = {"type": "pytorch", "communication_backend": "gloo", "process_count": 3, "node_count": 3}


@cache
def files() -> dict[str, bytes]:
    """Made by the first test that needs them: a process that has much memory takes long to start others."""
    return {
        # More than are in one block.
        **{f"small/{number:04d}.bin": os.urandom(7_000 + number) for number in range(1040)},
        "large/a.bin": os.urandom(5 * PIECE_BYTES + 321),
        "large/b.bin": os.urandom(2 * PIECE_BYTES),
        "large/exact.bin": os.urandom(PIECE_BYTES),
        "empty.bin": b"",
    }


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server()
    server.objects[BUCKET] = dict(files())
    yield server
    server.close()


@pytest.fixture
def swarm(server: S3Server, tmp_path: Path) -> Iterator[Swarm]:
    for name in ("alpha", "beta", "gamma"):
        node(name)
    run = launched(principal_of(make_contributor()), distribution=DISTRIBUTION)
    with hub_routes() as hub:
        nodes = [SwarmNode(hub, tmp_path, part) for part in parts_of(run)]
        for member in nodes:
            member.serve()
        yield Swarm(server, nodes, tmp_path)
        for member in nodes:
            member.close()
