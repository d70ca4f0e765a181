"""The names of contents, which files get after their download."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import eventually
from tests.node.data.processes import AGENT, Fetch, bucket, name_contents, naming_command
from tests.stores.s3_server import BUCKET, S3Server
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.data.contents import naming
from trainhub_node.data.contents.content_namer import ContentNamer
from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.small_part import SmallFileLocks
from trainhub_node.untrusted import removal

SAME = os.urandom(3_000_000)
FILES = {"a/one.bin": SAME, "b/two.bin": SAME, "c.bin": b"other", "empty.bin": b""}
# Takes longer to hash than any test waits.
ENDLESS = 10**12


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server()
    server.objects[BUCKET] = dict(FILES)
    yield server
    server.close()


@pytest.fixture
def cache(tmp_path: Path) -> DataCache:
    return DataCache(str(tmp_path / "data"), AGENT)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def inodes(top: str) -> list[int]:
    """Those of all files in this part of the cache."""
    return [path.stat().st_ino for path in Path(top).glob("*/*")]


def names_of_contents(cache: DataCache) -> set[str]:
    return {path.name for path in Path(cache.objects).glob("*/*")}


def read_again(cache: DataCache, server: S3Server) -> Fetch:
    """Another run downloads the files."""
    fetch = Fetch(Path(cache.folder), bucket(server), attempt=f"{'b2' * 16}-1")
    assert fetch.done()["downloaded_files"] == 0
    assert fetch.files() == FILES
    return fetch


def endless_file(cache: DataCache) -> None:
    cache.make()
    with Path(cache.name("ee" * 32)).open("wb") as file:
        file.truncate(ENDLESS)


def test_appear_later_and_equal_files_are_then_kept_once(cache: DataCache, server: S3Server) -> None:
    fetch = Fetch(Path(cache.folder), bucket(server))
    fetch.done()
    assert not names_of_contents(cache)
    removal.remove_tree(str(fetch.tree))
    name_contents(Path(cache.folder))
    assert names_of_contents(cache) == {sha256(content) for content in FILES.values()}
    assert set(inodes(cache.names)) == set(inodes(cache.objects))
    assert len(set(inodes(cache.names))) == 3
    read_again(cache, server)


def test_what_a_run_uses_is_left_alone_until_it_is_over(cache: DataCache, server: S3Server) -> None:
    fetch = Fetch(Path(cache.folder), bucket(server))
    fetch.done()
    before = {path: path.stat().st_ino for path in fetch.tree.rglob("*.bin")}
    name_contents(Path(cache.folder))
    assert {path: path.stat().st_ino for path in fetch.tree.rglob("*.bin")} == before
    assert set(inodes(cache.objects)) == set(before.values()), "all that takes space is counted"
    (copy,) = names_of_contents(cache) - {sha256(content) for content in FILES.values()}
    assert copy.startswith(sha256(SAME))
    removal.remove_tree(str(fetch.tree))
    name_contents(Path(cache.folder))
    assert names_of_contents(cache) == {sha256(content) for content in FILES.values()}
    read_again(cache, server)


def test_a_file_that_another_download_brings_is_kept_once(cache: DataCache, server: S3Server) -> None:
    folder = Path(cache.folder)
    for scope in ("workspace 1", "workspace 2"):
        fetch = Fetch(folder, bucket(server), scope=scope)
        assert fetch.done()["downloaded_files"] == len(FILES)
        removal.remove_tree(str(fetch.tree))
        name_contents(folder)
    assert len(inodes(cache.names)) == 2 * len(FILES)
    assert len(set(inodes(cache.names))) == 3


def test_a_kill_in_the_middle_loses_nothing(cache: DataCache, server: S3Server) -> None:
    fetch = Fetch(Path(cache.folder), bucket(server))
    fetch.done()
    removal.remove_tree(str(fetch.tree))
    endless_file(cache)
    process = subprocess.Popen(naming_command(Path(cache.folder)), env={})
    eventually(lambda: _reads(process.pid, cache.name("ee" * 32)), 30, "it comes to the endless file")
    process.send_signal(signal.SIGKILL)
    process.wait()
    Path(cache.name("ee" * 32)).unlink()
    again = read_again(cache, server)
    removal.remove_tree(str(again.tree))
    name_contents(Path(cache.folder))
    assert names_of_contents(cache) == {sha256(content) for content in FILES.values()}


def _reads(pid: int, path: str) -> bool:
    return any(os.path.realpath(link) == path for link in Path(f"/proc/{pid}/fd").iterdir())


@pytest.mark.parametrize("steps", [1, 2])
def test_a_copy_half_replaced_is_finished(cache: DataCache, server: S3Server, steps: int) -> None:
    """Killed after a link to the content was made, or after that had taken its place."""
    fetch = Fetch(Path(cache.folder), bucket(server))
    fetch.done()
    name_contents(Path(cache.folder))
    removal.remove_tree(str(fetch.tree))
    (copy,) = (path for path in Path(cache.objects).glob(f"*/*{cache.COPY}*"))
    unfinished = Path(cache.folder, "contents.unfinished")
    unfinished.hardlink_to(cache.content(sha256(SAME)))
    if steps == 2:
        unfinished.rename(cache.name(copy.name.partition(cache.COPY)[2]))
    name_contents(Path(cache.folder))
    assert not copy.exists()
    assert not unfinished.exists()
    assert Path(cache.content(sha256(SAME))).stat().st_nlink == 3
    read_again(cache, server)


def test_a_copy_outlives_the_content_that_made_room(cache: DataCache, server: S3Server) -> None:
    Fetch(Path(cache.folder), bucket(server)).done()
    name_contents(Path(cache.folder))
    first = Path(cache.content(sha256(SAME)))
    (name,) = (path for path in Path(cache.names).glob("*/*") if path.samefile(first))
    for path in (name, first):
        path.unlink()
    name_contents(Path(cache.folder))
    assert names_of_contents(cache) == {sha256(content) for content in FILES.values()}


def test_a_file_that_makes_room_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(SAME)
    with path.open("rb") as file:
        path.unlink()
        assert naming._hash(file.fileno()) == ""


def test_the_process_has_the_lowest_priority_and_ends_with_its_agent(cache: DataCache) -> None:
    endless_file(cache)
    namer = ContentNamer(cache, AGENT_WRAPPER)
    namer.submit()
    eventually(lambda: namer._process is not None, 10, "it starts")
    assert namer._process is not None
    pid = namer._process.pid
    eventually(lambda: _reads(pid, cache.name("ee" * 32)), 30, "it reads")
    assert os.sched_getscheduler(pid) == os.SCHED_IDLE
    name_contents(Path(cache.folder))  # A second one leaves it to the first.
    namer.close()
    assert namer._process.wait(10) == -signal.SIGKILL


def test_an_agent_that_is_killed_takes_the_process_along(cache: DataCache) -> None:
    endless_file(cache)
    program = (
        "import sys\n"
        "from trainhub_node.data.contents.content_namer import ContentNamer\n"
        "from trainhub_node.data.data_cache import DataCache\n"
        "from trainhub_node.bootstrap_command import AGENT_WRAPPER\n"
        "namer = ContentNamer(DataCache(sys.argv[1], ''), AGENT_WRAPPER)\n"
        "namer.submit()\n"
        "while namer._process is None: pass\n"
        "print(namer._process.pid, flush=True)\n"
        "namer._process.wait()\n"
    )
    agent = subprocess.Popen([sys.executable, "-c", program, cache.folder], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    pid = int(agent.stdout.readline())
    eventually(lambda: _reads(pid, cache.name("ee" * 32)), 30, "it reads")
    agent.kill()
    agent.wait()
    agent.stdout.close()
    eventually(lambda: _is_gone(pid), 10, "it is gone")


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


class TestLocks:
    def test_of_a_small_file_keep_other_threads_and_processes_away(self, cache: DataCache) -> None:
        cache.make()
        locks = SmallFileLocks(cache)
        first, second = "ab" * 32, "cd" * 32
        assert locks.acquire(first)
        taken: list[bool] = []
        thread = threading.Thread(target=lambda: taken.append(locks.acquire(first)))
        thread.start()
        thread.join()
        assert taken == [False]
        assert self._acquires_elsewhere(cache, first, second) == "False True"
        locks.release(first)
        assert self._acquires_elsewhere(cache, first, second) == "True True"
        locks.close()

    def _acquires_elsewhere(self, cache: DataCache, *identities: str) -> str:
        program = (
            "import sys\n"
            "from trainhub_node.data.data_cache import DataCache\n"
            "from trainhub_node.data.small_part import SmallFileLocks\n"
            "locks = SmallFileLocks(DataCache(sys.argv[1], ''))\n"
            "print(*map(locks.acquire, sys.argv[2:]))\n"
        )
        command = [sys.executable, "-c", program, cache.folder, *identities]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
