"""What is killed or canceled in the middle of a download, and what becomes of the data then."""

from __future__ import annotations

import hashlib
import os
import signal
import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.hosts import processes
from tests.hosts.bench import Hosts
from tests.hosts.data.test_stores import TRAIN, add_datastore, add_secret, check_nowhere
from tests.hub import eventually, free_port
from tests.stores.s3_process import S3Process, contents
from tests.stores.s3_server import BLOCK, BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET
from trainhub_node.data.data_cache import RECORD
from trainhub_node.data.part_file import PIECE_BYTES

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
# Each file has two pieces, and is held in the second one.
FILES, FILE_BYTES = 3, PIECE_BYTES + 4_000_000
HELD_FROM = PIECE_BYTES + 1_000_000
PIECES = FILES * PIECE_BYTES
# The store counts what it sends to a connection whose other side is gone.
UNREAD = FILES * 2 * BLOCK
SIZE = FILES * FILE_BYTES


@cache
def files() -> dict[str, bytes]:
    return contents(FILES, FILE_BYTES)


@cache
def expected_log() -> str:
    digest = hashlib.sha256(b"".join(files()[name] for name in sorted(files()))).hexdigest()
    return f"rank 0 reads {FILES} {digest}\n"


@pytest.fixture(scope="module")
def key(apart: Hosts) -> str:
    """The secret that opens the store."""
    add_secret(apart, "kills", SECRET)
    return "kills"


@pytest.fixture
def name() -> str:
    """Of the datastore of a test, and of the folder there: no node has the files of another test."""
    return f"held-{uuid.uuid4()}"


@pytest.fixture
def store(apart: Hosts, key: str, name: str) -> Iterator[S3Server]:
    """A store that stops in the middle of each file."""
    server = S3Server(apart.bridge.hub_address)
    server.objects[BUCKET] = {f"{name}/{file}": content for file, content in files().items()}
    server.hold_from = HELD_FROM
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID}
    add_datastore(apart, name, **place, secret=key)
    yield server
    server.hold_from = None
    server.close()


def start(hosts: Hosts, name: str, **spec: Any) -> str:
    """A run that reads the datastore of this test."""
    return hosts.script(
        TRAIN.replace("os.environ['RANK']", "0"),
        arguments=["--data-folder", "$TRAINHUB_INPUT_BIRDS"],
        inputs={"birds": {"datastore": name, "path": name}},
        **spec,
    )


def until_held(hosts: Hosts, server: S3Server) -> None:
    """Waits until the first pieces have arrived, on a host that a run without a choice gets."""
    parts = hosts.hosts[0].folder / "data" / "parts"
    eventually(lambda: server.sent >= PIECES, 60, "the store sends")
    eventually(lambda: len([*parts.glob(f"*/*/*{RECORD}")]) == FILES, 60, "the first pieces are on the disk")


def check_read(hosts: Hosts, run: str) -> None:
    ended = hosts.runs.ended(run, 120)
    assert ended["state"] == "Completed", ended["sentence"]
    assert hosts.runs.log(run).decode() == expected_log()


def test_an_agent_that_is_killed_does_not_matter(apart: Hosts, store: S3Server, name: str) -> None:
    run, host = start(apart, name), apart.hosts[0]
    until_held(apart, store)
    check_no_environment(SECRET)
    host.kill_agent()
    store.hold_from = None
    host.start_agent()
    check_read(apart, run)
    assert store.sent <= SIZE + UNREAD, "each byte was sent once"
    check_nowhere(apart, SECRET)


@pytest.mark.parametrize("process", ["child", "data"])
def test_a_retry_goes_on_where_a_killed_process_was(
    apart: Hosts, store: S3Server, name: str, process: str
) -> None:
    """The process of the attempt, or that of the download."""
    run = start(apart, name, limits={"retries": 1})
    until_held(apart, store)
    os.kill(apart.hosts[0].pid_of(f"bootstrap.py {process}"), signal.SIGKILL)
    eventually(lambda: apart.runs.detail(run)["attempt"] == 2, 60, "the second attempt begins")
    sent, store.hold_from = store.sent, None
    check_read(apart, run)
    assert store.sent - sent <= SIZE - PIECES + UNREAD, "what had arrived was not sent again"


def test_a_canceled_download_ends_and_leaves_what_has_arrived(
    apart: Hosts, store: S3Server, name: str
) -> None:
    run, host = start(apart, name), apart.hosts[0]
    until_held(apart, store)
    apart.runs.client.post(f"/api/v1/runs/{run}/cancel/")
    assert apart.runs.ended(run, 30)["state"] == "Canceled"
    assert not [pid for pid in host.pids() if "bootstrap.py data" in processes.command(pid)]
    sent, store.hold_from = store.sent, None
    check_read(apart, start(apart, name))
    assert store.sent - sent <= SIZE - PIECES + UNREAD


def test_a_store_that_is_killed_and_comes_back_is_asked_again(apart: Hosts, key: str, name: str) -> None:
    store = S3Process(apart.bridge.hub_address, free_port(), FILES, FILE_BYTES, rate=SIZE // 8)
    try:
        place = {"kind": "s3", "bucket": BUCKET, "endpoint": store.url, "access_key_id": KEY_ID}
        add_datastore(apart, name, **place, secret=key)
        run = apart.script(
            TRAIN.replace("os.environ['RANK']", "0"),
            arguments=["--data-folder", "$TRAINHUB_INPUT_BIRDS"],
            inputs={"birds": {"datastore": name, "path": "2024"}},
        )
        parts = apart.hosts[0].folder / "data" / "parts"
        eventually(lambda: any(parts.glob("*/*/*")), 60, "the download has begun")
        store.kill()
        store.start()
        check_read(apart, run)
    finally:
        store.kill()


def check_no_environment(secret: str) -> None:
    """Asserts that no process of any host or the hub has the value in its variables or its command line."""
    assert not [
        processes.command(pid)
        for pid in processes.everyone()
        for name in ("environ", "cmdline")
        if secret.encode() in processes.read(pid, name)
    ]
