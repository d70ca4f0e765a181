"""What the cache does after a crash of the machine, of which only the id of the boot tells."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

import pytest

from tests.node.data.processes import AGENT
from trainhub_node import proc
from trainhub_node.data import durability
from trainhub_node.data.data_cache import DataCache

CONTENT = {"first": b"the first file", "second": b"the second file"}


@pytest.fixture
def cache(tmp_path: Path) -> DataCache:
    """A cache with two files, in use since this machine was started."""
    cache = DataCache(str(tmp_path / "data"), AGENT)
    cache.make()
    durability.check_after_restart(cache)
    for name, content in CONTENT.items():
        add(cache, name, content)
    return cache


def add(cache: DataCache, name: str, content: bytes) -> None:
    sha256 = hashlib.sha256(content).hexdigest()
    for path in (cache.content(sha256), cache.name(name)):
        Path(path).parent.mkdir(exist_ok=True)
    Path(cache.content(sha256)).write_bytes(content)
    Path(cache.name(name)).hardlink_to(cache.content(sha256))


def crash(monkeypatch: pytest.MonkeyPatch, folder: str) -> DataCache:
    """Returns the cache as the machine finds it after its next start."""
    monkeypatch.setattr(proc, "boot_id", lambda: "another-boot")
    cache = DataCache(folder, AGENT)
    cache.make()
    return cache


def names(cache: DataCache) -> set[str]:
    return {path.name for path in Path(cache.names).glob("*/*")}


def test_a_damaged_file_loses_all_its_names(cache: DataCache, monkeypatch: pytest.MonkeyPatch) -> None:
    part = Path(cache.part("aa" * 32))
    part.touch()
    path = Path(cache.name("second"))
    path.write_bytes(b"\0" * len(CONTENT["second"]))
    after = crash(monkeypatch, cache.folder)
    durability.check_after_restart(after)
    assert names(after) == {"first"}
    assert len(list(Path(after.objects).glob("*/*"))) == 1
    assert not part.exists(), "nobody knows which pieces of it reached the disk"


def test_what_was_written_to_the_disk_is_not_read_again(
    cache: DataCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    durability.write_out(cache)
    record = json.loads(Path(cache.folder, "written.json").read_text())
    assert record["boot"] == proc.boot_id()
    assert record["at"] > 0
    after = crash(monkeypatch, cache.folder)
    monkeypatch.setattr(durability, "_sha256", lambda path: pytest.fail(f"{path} is read"))
    durability.check_after_restart(after)
    assert names(after) == set(CONTENT)


def test_a_file_whose_hash_was_not_known_yet_goes_unless_it_was_on_the_disk(
    cache: DataCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in CONTENT.items():
        Path(cache.content(hashlib.sha256(content).hexdigest())).unlink()
        if name == "first":
            durability.write_out(cache)
            time.sleep(0.05)
    after = crash(monkeypatch, cache.folder)
    durability.check_after_restart(after)
    assert names(after) == {"first"}


def test_a_copy_that_a_run_used_is_compared_too(cache: DataCache, monkeypatch: pytest.MonkeyPatch) -> None:
    sha256 = hashlib.sha256(CONTENT["first"]).hexdigest()
    for name, content in (("third", CONTENT["first"]), ("fourth", b"damaged")):
        Path(cache.copy(sha256, name)).write_bytes(content)
        Path(cache.name(name)).parent.mkdir(exist_ok=True)
        Path(cache.name(name)).hardlink_to(cache.copy(sha256, name))
    after = crash(monkeypatch, cache.folder)
    durability.check_after_restart(after)
    assert names(after) == {"first", "second", "third"}


def test_without_a_crash_nothing_is_checked(cache: DataCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "_sha256", lambda path: pytest.fail(f"{path} is read"))
    durability.check_after_restart(cache)
    assert names(cache) == set(CONTENT)


def test_a_cache_that_is_not_there_yet_needs_nothing(tmp_path: Path) -> None:
    durability.write_out(DataCache(str(tmp_path / "data"), AGENT))
    assert not (tmp_path / "data").exists()
