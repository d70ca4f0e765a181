"""What a node tells about the lists of which it has all files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.data.processes import Fetch, bucket, name_contents, written_list
from tests.stores.s3_server import BUCKET, S3Server
from trainhub_launch.machine import MAX_DATA_LISTS
from trainhub_node import proc
from trainhub_node.data import cached_lists, durability
from trainhub_node.data.data_cache import DataCache

SIZE = 100_000


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server()
    server.objects[BUCKET] = {f"{name}/file.bin": os.urandom(SIZE) for name in "abc"}
    yield server
    server.close()


class Node:
    """Runs that read lists, one after the other, and the cache that they share."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        self.folder = folder
        self.server = server
        self.cache = DataCache(str(folder / "data"), "agent")

    def read(self, name: str, limit: int = 10 * SIZE) -> Fetch:
        """A run downloads a list with one file of this folder of the store."""
        manifest = written_list(self.folder, self.server, f"{name}/file.bin")
        number = f"{ord(name):02x}" * 16
        return Fetch(
            self.folder / "data",
            bucket(self.server),
            name,
            manifest=manifest,
            list_key=name,
            attempt=f"{number}-1",
            limit=limit,
        )

    @property
    def keys(self) -> tuple[str, ...]:
        return cached_lists.cached_keys(self.cache)


@pytest.fixture
def node(tmp_path: Path, server: S3Server) -> Node:
    return Node(tmp_path, server)


def test_without_a_cache_there_is_none(node: Node) -> None:
    assert node.keys == ()


def test_a_list_counts_once_a_run_has_all_its_files(node: Node) -> None:
    node.read("a").done()
    assert node.keys == ("a",)


def test_a_list_that_could_not_be_downloaded_does_not_count(node: Node) -> None:
    missing = node.read("b", limit=SIZE // 2)
    missing.error()
    assert node.keys == ()


def test_a_list_whose_files_have_made_room_does_not_count_any_more(node: Node) -> None:
    first = node.read("a")
    first.done()
    (first.tree / "file.bin").unlink()
    node.read("b").done()
    node.read("c", limit=2 * SIZE).done()
    assert set(node.keys) == {"b", "c"}


def test_a_run_that_is_refused_makes_no_room(node: Node) -> None:
    first = node.read("a")
    first.done()
    (first.tree / "file.bin").unlink()
    node.read("b", limit=SIZE // 2).error()
    assert node.keys == ("a",)
    sent = node.server.sent
    assert node.read("a").done()["downloaded_files"] == 0
    assert node.server.sent == sent


def test_only_the_latest_are_told(node: Node) -> None:
    node.cache.make()
    for number in range(MAX_DATA_LISTS + 5):
        cached_lists.note_list(node.cache, f"{number:016x}", 1_000_000.0 + number)
    keys = node.keys
    assert len(keys) == MAX_DATA_LISTS
    assert keys[0] == f"{MAX_DATA_LISTS + 4:016x}"


def test_after_a_crash_that_damaged_a_file_none_counts(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.read("a").done()
    name_contents(node.folder / "data")
    (content,) = Path(node.cache.objects).glob("*/*")
    content.chmod(0o600)
    content.write_bytes(b"damaged")
    monkeypatch.setattr(proc, "boot_id", lambda: "another-boot")
    after = DataCache(node.cache.folder, "agent")
    after.make()
    durability.check_after_restart(after)
    assert cached_lists.cached_keys(after) == ()
