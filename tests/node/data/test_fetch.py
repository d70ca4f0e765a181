"""Downloads from a store of S3's protocol, with what goes wrong on the way."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.hub import eventually
from tests.node.data.processes import Fetch, bucket, written_list
from tests.stores.s3_server import BUCKET, MODIFIED_AT, PUBLIC, S3Server
from trainhub_launch.data.manifests import ListedFile, ManifestWriter
from trainhub_launch.data.stores import HTTP, RETRY_S, Store
from trainhub_node.data import space
from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.errors import DataError
from trainhub_node.data.part_file import NUMBER, PIECE_BYTES

SMALL = {f"2024/{number:04d}.bin": os.urandom(5_000) for number in range(200)}
LARGE = os.urandom(3 * PIECE_BYTES + 12_345)
MB = 1_000_000


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server()
    server.objects[BUCKET] = dict(SMALL)
    yield server
    server.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def pieces_here(folder: Path) -> int:
    """How many pieces of files have arrived."""
    return sum(record.stat().st_size // NUMBER.size for record in folder.glob("parts/*/*/*.blocks"))


def inode(path: Path) -> int:
    return path.stat().st_ino


class TestFiles:
    def test_arrive_whole_and_only_once(self, server: S3Server, folder: Path) -> None:
        server.objects[BUCKET]["2024/large.bin"] = LARGE
        wanted = {name.removeprefix("2024/"): content for name, content in server.objects[BUCKET].items()}
        first = Fetch(folder, bucket(server), "2024")
        assert first.done()["downloaded_files"] == len(wanted)
        assert first.files() == wanted
        assert server.sent == sum(map(len, wanted.values()))
        second = Fetch(folder, bucket(server), "2024", attempt=f"{'b2' * 16}-1")
        assert second.done()["downloaded_files"] == 0
        assert second.files() == wanted
        assert server.sent == sum(map(len, wanted.values()))

    def test_are_exactly_those_of_a_list(self, server: S3Server, folder: Path, tmp_path: Path) -> None:
        listed = written_list(tmp_path, server, "2024/0001.bin", "2024/0007.bin")
        first = Fetch(folder, bucket(server), "2024", manifest=listed)
        first.done()
        assert first.files() == {name: SMALL[f"2024/{name}"] for name in ("0001.bin", "0007.bin")}
        server.objects[BUCKET] = {}
        second = Fetch(folder, bucket(server), "2024", attempt=f"{'b2' * 16}-1", manifest=listed)
        assert second.done()["downloaded_files"] == 0, "what is here needs no store"
        assert second.files() == first.files()

    def test_of_a_list_with_one_file_are_that_file(
        self, server: S3Server, folder: Path, tmp_path: Path
    ) -> None:
        listed = written_list(tmp_path, server, "2024/0001.bin")
        fetch = Fetch(folder, bucket(server), "2024/0001.bin", manifest=listed, is_file=True)
        assert Path(fetch.done()["path"]).read_bytes() == SMALL["2024/0001.bin"]

    @pytest.mark.parametrize("size", [5_000, 4_000])
    def test_of_a_list_that_were_changed_or_removed_are_named(
        self, server: S3Server, folder: Path, tmp_path: Path, size: int
    ) -> None:
        listed = written_list(tmp_path, server, "2024/0001.bin", "2024/0007.bin")
        server.objects[BUCKET]["2024/0007.bin"] = os.urandom(size)
        sentence = Fetch(folder, bucket(server), "2024", manifest=listed).error()
        assert "has another 2024/0007.bin than when it was listed" in sentence
        assert "Refresh the dataset, and start the run with its new version. Or choose" in sentence
        del server.objects[BUCKET]["2024/0007.bin"]
        sentence = Fetch(folder, bucket(server), "2024", manifest=listed).error()
        assert sentence.startswith("The bucket birds has no 2024/0007.bin any more. Refresh the dataset")

    def test_that_stores_give_no_version_are_named_where_they_have_grown(
        self, server: S3Server, folder: Path, tmp_path: Path
    ) -> None:
        with (tmp_path / "manifest").open("wb") as output:
            writer = ManifestWriter(output)
            writer.write(ListedFile("0001.bin", 5, "", MODIFIED_AT))
            writer.flush()
        fetch = Fetch(folder, bucket(server), "2024", manifest=str(tmp_path / "manifest"))
        assert "has another 2024/0001.bin than when it was listed" in fetch.error()
        assert not list((folder / "names").rglob("*/*"))

    def test_cannot_be_written_by_the_run(self, server: S3Server, folder: Path) -> None:
        fetch = Fetch(folder, bucket(server), "2024", group=4711)
        fetch.done()
        assert {path.stat().st_mode & 0o777 for path in fetch.tree.rglob("*.bin")} == {0o444}
        attempt = fetch.tree.parent.stat()
        assert (attempt.st_uid, attempt.st_gid, attempt.st_mode & 0o777) == (os.geteuid(), 4711, 0o750)
        assert (folder / "objects").stat().st_mode & 0o777 == 0o700

    def test_are_copies_where_the_run_has_the_agents_account(self, server: S3Server, folder: Path) -> None:
        fetch = Fetch(folder, bucket(server), "2024", copies=True)
        fetch.done()
        kept = {inode(path) for path in (folder / "names").rglob("*/*")}
        assert len(kept) == len(SMALL)
        assert not kept & {inode(path) for path in fetch.tree.rglob("*.bin")}
        assert fetch.files() == {name.removeprefix("2024/"): content for name, content in SMALL.items()}

    def test_of_another_workspace_are_downloaded_with_its_own_credentials(
        self, server: S3Server, folder: Path
    ) -> None:
        Fetch(folder, bucket(server), "2024").done()
        other = Fetch(folder, bucket(server), "2024", scope="workspace 2")
        assert other.done()["downloaded_files"] == len(SMALL)

    def test_of_a_web_server_come_one_by_one(self, server: S3Server, folder: Path) -> None:
        server.objects[PUBLIC] = {"sets/large.bin": LARGE}
        web = Store(HTTP, settings={"url": f"{server.url}/{PUBLIC}/sets/"})
        fetch = Fetch(folder, web, "large.bin")
        assert fetch.done()["path"] == str(fetch.tree / "large.bin")
        assert fetch.files() == {"large.bin": LARGE}
        assert "name a file of 127.0.0.1 as path" in Fetch(folder, web).error()


class TestFaults:
    def test_an_overloaded_store_is_asked_again(self, server: S3Server, folder: Path) -> None:
        server.statuses.extend([503] * 20)
        fetch = Fetch(folder, bucket(server), "2024")
        assert fetch.done()["files"] == len(SMALL)
        assert not server.statuses

    def test_after_a_kill_only_the_rest_is_downloaded(self, server: S3Server, folder: Path) -> None:
        server.objects[BUCKET] = {"large.bin": LARGE, **SMALL}
        server.hold_from = 2 * PIECE_BYTES
        first = Fetch(folder, bucket(server))
        eventually(lambda: pieces_here(folder) == 2, 30, "the first pieces of the large file are not there")
        first.process.kill()
        first.process.wait()
        server.hold_from, before = None, server.sent
        second = Fetch(folder, bucket(server))
        second.done()
        assert second.files() == server.objects[BUCKET]
        assert server.sent - before <= len(LARGE) - 2 * PIECE_BYTES + sum(map(len, SMALL.values()))
        assert not list(folder.glob("parts/*/*/*")), "nothing half-made stays"

    def test_two_runs_at_once_download_each_file_once(self, server: S3Server, folder: Path) -> None:
        server.objects[BUCKET] = {"large.bin": LARGE, **SMALL}
        server.rate = 40 * MB
        runs = [Fetch(folder, bucket(server), attempt=f"{mark * 16}-1") for mark in ("c3", "d4", "e5")]
        assert sorted(run.done()["files"] for run in runs) == [len(SMALL) + 1] * 3
        assert all(run.files() == server.objects[BUCKET] for run in runs)
        assert server.sent == len(LARGE) + sum(map(len, SMALL.values()))

    def test_a_wrong_key_is_said_so(self, server: S3Server, folder: Path) -> None:
        error = Fetch(folder, bucket(server), secret="wrong").error()
        assert error == (
            "The bucket birds refuses these credentials (SignatureDoesNotMatch): check the id and the secret "
            "part of the access key, and that it may list and read."
        )

    def test_a_bucket_that_is_not_there(self, server: S3Server, folder: Path) -> None:
        error = Fetch(folder, bucket(server, "eagles")).error()
        assert error == "There is no bucket eagles: check its name and the endpoint."

    def test_a_path_with_nothing_below_it(self, server: S3Server, folder: Path) -> None:
        error = Fetch(folder, bucket(server), "2025").error()
        assert error == "The bucket birds has nothing at 2025: check the path and its capital letters."

    def test_a_server_that_is_away_for_a_while(self, server: S3Server, folder: Path) -> None:
        """Longer than the ten requests of obstore last."""
        store = bucket(server)
        server.close()
        fetch = Fetch(folder, store, "2024")
        time.sleep(8)
        address, port = server.server_address[:2]
        with closing(S3Server(str(address), port, dict(SMALL))):
            assert fetch.done()["downloaded_files"] == len(SMALL)

    @pytest.mark.long
    def test_a_server_that_does_not_come_back(self, server: S3Server, folder: Path) -> None:
        store = bucket(server)
        server.close()
        started = time.monotonic()
        assert "cannot be read: its server refuses the connection" in Fetch(folder, store).error()
        assert time.monotonic() - started >= RETRY_S


class TestSpace:
    def test_data_that_never_fits_is_refused_with_numbers(self, server: S3Server, folder: Path) -> None:
        server.objects[BUCKET] = {"large.bin": LARGE}
        error = Fetch(folder, bucket(server), limit=20 * MB).error()
        assert error == (
            "The data needs 0.03 GB, and the cache of this node has room for 0.02 GB, of which other runs "
            "use 0.00 GB: choose another node, or ask its operator to raise TRAINHUB_NODE_DATA_CACHE_BYTES."
        )
        assert server.sent == 0

    def test_a_setting_is_no_remedy_for_a_small_disk(self, folder: Path) -> None:
        cache = DataCache(str(folder), "agent")
        cache.make()
        with (
            pytest.raises(DataError, match="move TRAINHUB_NODE_CACHE to a larger disk"),
            space.reserve(cache, f"{'a1' * 16}-1", 10**18, 10 * MB),
        ):
            pytest.fail("there is no such room")

    def test_what_no_run_uses_gives_way_and_the_rest_stays(self, server: S3Server, folder: Path) -> None:
        server.objects[BUCKET] = {f"{name}/file.bin": os.urandom(10 * MB) for name in ("a", "b", "c", "d")}
        used = Fetch(folder, bucket(server), "a", attempt=f"{'a1' * 16}-1")
        used.done()
        unused = Fetch(folder, bucket(server), "b", attempt=f"{'b2' * 16}-1")
        unused.done()
        (unused.tree / "file.bin").unlink()
        third = Fetch(folder, bucket(server), "c", attempt=f"{'c3' * 16}-1", limit=25 * MB)
        third.done()
        kept = {path.stat().st_ino for path in (folder / "names").rglob("*/*")}
        assert kept == {inode(used.tree / "file.bin"), inode(third.tree / "file.bin")}
        fourth = Fetch(folder, bucket(server), "d", attempt=f"{'d4' * 16}-1", limit=25 * MB)
        assert "of which other runs use 0.02 GB" in fourth.error()
