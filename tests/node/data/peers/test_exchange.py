"""Several nodes download the same files: each byte leaves the store about once, whatever ends in the
middle."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from pathlib import Path

import pytest
from django.utils import timezone

from datastores.models import BlockHashes, PeerServer
from jobs.models import Attempt
from tests.hub import eventually
from tests.node.data.peers.conftest import files
from tests.node.data.peers.swarm import Swarm, SwarmNode
from tests.node.data.processes import Fetch
from tests.stores.s3_server import BUCKET

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey"), pytest.mark.slow]
LATER = f"{'b2' * 16}-1"
# Beside the files: what is read twice because a node ended in the middle.
LOST = 8 * 8 * 1024 * 1024


def notes(fetch: Fetch) -> list[str]:
    assert fetch.lines
    return [line["note"] for line in fetch.lines if "note" in line]


def published(swarm: Swarm) -> int:
    return sum(len(row.hashes) // 36 for row in BlockHashes.objects.all())


def corrupt(member: SwarmNode, content: bytes) -> None:
    """Changes a byte of the file with this content in the cache of the node."""
    for path in Path(member.cache.names).rglob("*/*"):
        if path.stat().st_size == len(content) and path.read_bytes() == content:
            path.chmod(0o600)
            with path.open("r+b") as file:
                file.seek(len(content) // 2)
                byte = file.read(1)
                file.seek(len(content) // 2)
                file.write(bytes([byte[0] ^ 1]))
            return
    raise AssertionError("no such file")


def test_each_byte_leaves_the_store_once(swarm: Swarm) -> None:
    swarm.server.rate = 30e6
    fetches = [swarm.fetch(member) for member in swarm.nodes]
    results = [fetch.done() for fetch in fetches]
    assert all(fetch.files() == files() for fetch in fetches)
    assert swarm.server.sent <= 1.05 * swarm.bytes
    assert sum(sum(result["peer_bytes"].values()) for result in results) >= 1.9 * swarm.bytes
    assert not any(map(notes, fetches))


@pytest.mark.long
def test_later_nodes_need_no_store(swarm: Swarm) -> None:
    alpha, beta, gamma = swarm.nodes
    swarm.fetch(alpha).done()
    swarm.server.objects[BUCKET] = {}
    for member in (beta, gamma):
        fetch = swarm.fetch(member)
        assert sum(fetch.done()["peer_bytes"].values()) == swarm.bytes
        assert fetch.files() == files()
    assert swarm.server.sent == swarm.bytes


def test_what_a_node_has_already_is_given_to_the_others(swarm: Swarm) -> None:
    alpha, beta, _ = swarm.nodes
    Fetch(alpha.folder, swarm.download.store, manifest=str(swarm.manifest), scope=swarm.download.scope).done()
    sent = swarm.server.sent
    assert swarm.fetch(alpha, LATER).done()["downloaded_files"] == 0
    assert swarm.fetch(beta).done()["files"] == len(files())
    # Nobody has told the hashes yet: they are those of the bytes that the store sends.
    assert swarm.server.sent <= sent + swarm.bytes


def test_a_node_that_lies_is_not_believed(swarm: Swarm) -> None:
    alpha, beta, gamma = swarm.nodes
    swarm.fetch(alpha).done()
    for name in ("large/a.bin", "small/0700.bin"):
        corrupt(alpha, files()[name])
    for member in (beta, gamma):
        fetch = swarm.fetch(member)
        fetch.done()
        assert fetch.files() == files()
        if member is beta:
            # The other one may take all of it from this one.
            assert "Node alpha has sent bytes that are not those of the dataset" in notes(fetch)[0]
    assert swarm.server.sent <= 2.1 * swarm.bytes, "and beta gives its own to gamma"


@pytest.mark.parametrize("answers", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_node_that_is_silent_costs_seconds(swarm: Swarm, answers: bool) -> None:
    """`answers`: it takes connections, and never says anything."""
    alpha, beta, _ = swarm.nodes
    swarm.fetch(alpha).done()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if not answers:
            silent.close()
        PeerServer.objects.filter(node=alpha.part.node).update(port=port)
        fetch = swarm.fetch(beta)
        assert fetch.done()["seconds"] < 60
        assert fetch.files() == files()


def test_a_download_that_is_killed_costs_the_others_only_its_share(swarm: Swarm) -> None:
    swarm.server.rate = 15e6
    killed, *others = [swarm.fetch(member) for member in swarm.nodes]
    eventually(lambda: published(swarm) >= 4, 30, "nothing was read")
    killed.process.send_signal(signal.SIGKILL)
    killed.process.wait()
    for fetch in others:
        fetch.done()
        assert fetch.files() == files()
    assert swarm.server.sent <= swarm.bytes + LOST
    sent = swarm.server.sent
    again = swarm.fetch(swarm.nodes[0])
    assert again.done()["files"] == len(files())
    assert again.files() == files()
    assert swarm.server.sent <= sent + 0.05 * swarm.bytes, "the rest comes from the others"


def test_a_process_that_serves_and_is_killed_is_done_without(swarm: Swarm) -> None:
    swarm.server.rate = 30e6
    fetches = [swarm.fetch(member) for member in swarm.nodes]
    eventually(lambda: published(swarm) >= 3, 30, "nothing was read")
    pid = swarm.nodes[0].server_pid()
    os.kill(pid, signal.SIGKILL)
    for fetch in fetches:
        fetch.done()
        assert fetch.files() == files()
    assert swarm.server.sent <= 2 * swarm.bytes


def test_without_the_hub_everything_comes_from_the_store(swarm: Swarm) -> None:
    swarm.server.rate = 30e6
    fetches = [swarm.fetch(member) for member in swarm.nodes[:2]]
    eventually(lambda: published(swarm) >= 2, 30, "nothing was read")
    # The tickets end with the attempt.
    Attempt.objects.update(ended_at=timezone.now())
    for fetch in fetches:
        fetch.done()
        assert fetch.files() == files()
        assert "read from the store, because the hub answers 401" in notes(fetch)[0]


@pytest.mark.long
def test_what_no_node_has_any_more_is_read_about_once_again(swarm: Swarm) -> None:
    alpha, beta, gamma = swarm.nodes
    swarm.fetch(alpha).done()
    shutil.rmtree(alpha.folder)
    fetches = [swarm.fetch(member) for member in (beta, gamma)]
    for fetch in fetches:
        fetch.done()
        assert fetch.files() == files()
    assert swarm.server.sent <= 2.2 * swarm.bytes


def test_two_downloads_of_one_node_bring_the_files_once(swarm: Swarm) -> None:
    swarm.server.rate = 60e6
    member = swarm.nodes[0]
    first, second = swarm.fetch(member), swarm.fetch(member, LATER)
    results = [first.done(), second.done()]
    assert sorted(result["downloaded_files"] for result in results) == [0, len(files())]
    assert first.files() == second.files() == files()
    assert swarm.server.sent == swarm.bytes
