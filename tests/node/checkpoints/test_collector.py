"""What an agent delivers of the checkpoints of its runs, and with which ones a run begins."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import order, process, script
from tests.node.hub import FakeHub, Key
from trainhub_launch.data.checkpoint_order import CheckpointOrder, OrderedFile
from trainhub_launch.errors import WireError
from trainhub_launch.order import NodeOrder
from trainhub_node.agent import Agent
from trainhub_node.checkpoints import collector
from trainhub_node.intake import orders
from trainhub_node.launch import unpack

SAVE = """
import os, pathlib, time
folder = pathlib.Path('checkpoints')
def save(name, data):
    (folder / '.new').write_bytes(data)
    (folder / '.new').rename(folder / name)
def until(name):
    while not os.path.exists(name): time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "SCAN_S", 0.1)


def saving(hub: FakeHub, code: str, *, files: tuple[OrderedFile, ...] = ()) -> NodeOrder:
    return replace(script(hub, SAVE + code), checkpoint=CheckpointOrder("checkpoints", files))


def work_of(agent: Agent, key: Key) -> Path:
    return agent.settings.attempts / f"{key[0]}-{key[1]}" / "work"


def bytes_of(hub: FakeHub, number: int) -> dict[str, bytes]:
    return {file["path"]: hub.blobs[file["sha256"]] for file in hub.checkpoints.parts[number]["files"]}


def test_is_delivered_while_the_run_runs(hub: FakeHub, agent: Agent) -> None:
    key = hub.give(saving(hub, "save('last.pt', b'weights')\nuntil('go')"))
    hub.wait(lambda: 1 in hub.checkpoints.parts)
    assert bytes_of(hub, 1) == {"last.pt": b"weights"}
    assert hub.checkpoints.signs() == {"last.pt": "renamed"}
    assert hub.facts[key].phase == "running"
    (work_of(agent, key) / "go").touch()
    hub.wait_done(key)
    assert list(hub.checkpoints.parts) == [1]


def test_what_is_saved_last_is_delivered_before_the_attempt_is_done(hub: FakeHub, agent: Agent) -> None:
    key = hub.give(
        saving(hub, "save('one.pt', b'1')\nsave('two.pt', b'2')\n(folder / 'three.pt').write_bytes(b'3')")
    )
    hub.wait_done(key)
    names = {hub.checkpoints.names[number]: bytes_of(hub, number) for number in hub.checkpoints.parts}
    assert names["two.pt"] == {"two.pt": b"2"}
    assert hub.checkpoints.signs()["three.pt"] == ""
    assert hub.checkpoints.announcements[-1]["names"] == ["one.pt", "two.pt", "three.pt"]


def test_what_the_hub_takes_later_is_announced_again(hub: FakeHub, agent: Agent) -> None:
    hub.checkpoints.is_busy = True
    key = hub.give(saving(hub, "save('last.pt', b'weights')"))
    hub.wait(lambda: len([body for body in hub.checkpoints.announcements if "names" in body]) > 1)
    assert hub.facts[key].phase == "uploading"
    hub.checkpoints.is_busy = False
    hub.wait_done(key)
    assert bytes_of(hub, 1) == {"last.pt": b"weights"}


def test_a_run_that_saves_none_says_nothing(hub: FakeHub, agent: Agent) -> None:
    hub.wait_done(hub.give(saving(hub, "print('hello')")))
    assert hub.checkpoints.announcements == []


def test_a_file_that_changes_while_it_is_saved_is_torn(
    hub: FakeHub, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = hub.give(saving(hub, "save('last.pt', b'weights')\nuntil('go')"))
    hub.wait(lambda: key in hub.facts and (work_of(agent, key) / "checkpoints" / "last.pt").exists())
    hub.wait(lambda: 1 in hub.checkpoints.parts)
    path = work_of(agent, key) / "checkpoints" / "last.pt"
    original = hub.store

    def store(data: bytes) -> str:
        # While the hub takes the bytes, the script goes on writing.
        with path.open("ab") as file:
            file.write(b"!")
        return original(data)

    monkeypatch.setattr(hub, "store", store)
    (path.parent / ".new").write_bytes(b"better weights")
    (path.parent / ".new").rename(path)
    hub.wait(lambda: 2 in hub.checkpoints.parts)
    assert hub.checkpoints.parts[2]["files"] == []
    assert "was changed while it was being saved" in hub.checkpoints.parts[2]["torn"]
    monkeypatch.undo()
    (work_of(agent, key) / "go").touch()
    hub.wait_done(key)


def test_a_file_whose_name_another_one_gets_meanwhile_is_saved(
    hub: FakeHub, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that saves more often than the node can deliver would never have a checkpoint otherwise."""
    key = hub.give(saving(hub, "save('last.pt', b'step 1')\nuntil('go')"))
    hub.wait(lambda: 1 in hub.checkpoints.parts)
    path = work_of(agent, key) / "checkpoints" / "last.pt"
    original, steps = hub.store, iter(range(3, 100))

    def rename(data: bytes) -> None:
        (path.parent / ".new").write_bytes(data)
        (path.parent / ".new").rename(path)

    def store(data: bytes) -> str:
        rename(b"step %d" % next(steps))
        return original(data)

    monkeypatch.setattr(hub, "store", store)
    rename(b"step 2")
    hub.wait(lambda: 2 in hub.checkpoints.parts)
    assert bytes_of(hub, 2) == {"last.pt": b"step 2"}
    monkeypatch.undo()
    (work_of(agent, key) / "go").touch()
    hub.wait_done(key)
    assert bytes_of(hub, max(hub.checkpoints.parts)) == {"last.pt": path.read_bytes()}


def test_what_fails_for_an_unknown_reason_is_given_up(
    hub: FakeHub, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = []

    def fail(*_: object) -> None:
        failures.append(1)
        raise ZeroDivisionError

    monkeypatch.setattr(collector, "deliver_part", fail)
    key = hub.give(saving(hub, "save('last.pt', b'weights')\nuntil('go')"))
    hub.wait(lambda: work_of(agent, key).exists())
    hub.wanted[key] = ((1, "last.pt"),)
    hub.wait(lambda: 1 in hub.checkpoints.parts)
    assert hub.checkpoints.parts[1]["torn"] == "its agent failed (ZeroDivisionError), see its log"
    assert len(failures) >= collector.MAX_FAILURES
    monkeypatch.undo()
    hub.wanted[key] = ()
    (work_of(agent, key) / "go").touch()
    hub.wait_done(key)


def test_the_part_of_another_nodes_checkpoint_is_delivered_when_the_hub_asks(
    hub: FakeHub, agent: Agent
) -> None:
    key = hub.give(
        saving(hub, "(folder / 'step-1').mkdir()\n(folder / 'step-1/own').write_text('x')\nuntil('go')")
    )
    own = work_of(agent, key) / "checkpoints" / "step-1" / "own"
    hub.wait(own.exists)
    hub.wanted[key] = ((7, "step-1"), (8, "unknown"))
    hub.wait(lambda: {7, 8} <= set(hub.checkpoints.parts))
    assert bytes_of(hub, 7) == {"step-1/own": b"x"}
    assert hub.checkpoints.parts[8] == {"files": []}
    (work_of(agent, key) / "go").touch()
    hub.wait_done(key)


def test_a_hub_that_is_away_gets_it_later(hub: FakeHub, agent: Agent) -> None:
    key = hub.give(saving(hub, "print('up', flush=True)\nuntil('go')\nsave('last.pt', b'weights')"))
    hub.wait_log(key, b"up")
    hub.available = False
    (work_of(agent, key) / "go").touch()
    refused = hub.refused
    hub.wait(lambda: hub.refused > refused + 4)
    hub.available = True
    hub.wait_done(key)
    assert bytes_of(hub, 1) == {"last.pt": b"weights"}


def test_a_run_begins_with_the_files_of_its_order(hub: FakeHub, agent: Agent) -> None:
    files = {"step-1/.metadata": b"all", "step-1/shard": b"shard", "same": b"shard"}
    ordered = tuple(OrderedFile(path, len(data), hub.store(data)) for path, data in files.items())
    code = "print(sorted((str(p), p.read_text()) for p in folder.rglob('*') if p.is_file()), flush=True)"
    key = hub.give(saving(hub, code, files=ordered))
    hub.wait_done(key)
    expected = sorted((f"checkpoints/{path}", data.decode()) for path, data in files.items())
    assert hub.log(key).decode().strip() == str(expected)
    # They are no news to the hub.
    assert [entry for body in hub.checkpoints.announcements for entry in body["entries"]] == []
    assert not (work_of(agent, key).parent / "restored").exists()


def test_files_with_the_same_content_are_not_one_file(hub: FakeHub, agent: Agent) -> None:
    sha256 = hub.store(b"shard")
    ordered = tuple(OrderedFile(path, 5, sha256) for path in ("a", "b"))
    code = "(folder / 'a').open('r+').write('other')\nprint((folder / 'b').read_text(), flush=True)"
    key = hub.give(saving(hub, code, files=ordered))
    hub.wait_done(key)
    assert hub.log(key) == b"shard\n"


def test_what_the_source_brought_under_a_name_gives_way(hub: FakeHub, agent: Agent) -> None:
    ordered = OrderedFile("last.pt", 3, hub.store(b"new"))
    source = {"train.py": "print(open('checkpoints/last.pt').read())", "checkpoints/last.pt/old": "old"}
    value = order(hub, source, process(0, ("python", "train.py")))
    key = hub.give(replace(value, checkpoint=CheckpointOrder("checkpoints", (ordered,))))
    hub.wait_done(key)
    assert hub.log(key) == b"new\n"


def test_a_file_of_the_source_gives_way_to_a_folder(hub: FakeHub, agent: Agent) -> None:
    ordered = OrderedFile("step-1/shard", 3, hub.store(b"new"))
    source = {"train.py": "print(open('checkpoints/step-1/shard').read())", "checkpoints/step-1": "old"}
    value = order(hub, source, process(0, ("python", "train.py")))
    key = hub.give(replace(value, checkpoint=CheckpointOrder("checkpoints", (ordered,))))
    hub.wait_done(key)
    assert hub.log(key) == b"new\n"


def test_a_file_that_the_hub_no_longer_has_fails_the_attempt(hub: FakeHub, agent: Agent) -> None:
    missing = OrderedFile("last.pt", 3, hashlib.sha256(b"gone").hexdigest())
    key = hub.give(saving(hub, "print('never')", files=(missing,)))
    assert hub.wait_done(key).error != ""


def test_a_folder_of_the_scripts_own_is_made_and_watched(hub: FakeHub, agent: Agent) -> None:
    code = "folder = pathlib.Path('lightning_logs/v0')\nsave('a.ckpt', b'a')"
    value = replace(script(hub, SAVE + code), checkpoint=CheckpointOrder("lightning_logs/v0"))
    key = hub.give(value)
    hub.wait_done(key)
    assert bytes_of(hub, 1) == {"a.ckpt": b"a"}


@pytest.mark.parametrize("path", ["../a", "/etc/passwd", "a//b", "a/../b", "a\0b", ""])
def test_an_order_that_leads_out_is_refused(hub: FakeHub, path: str) -> None:
    good = script(hub, "")
    for checkpoint in (CheckpointOrder(path), CheckpointOrder("c", (OrderedFile(path, 1, "0" * 64),))):
        bad = replace(good, checkpoint=checkpoint)
        with pytest.raises(WireError, match="no path below a folder"):
            orders.parse(bad.to_json(), bad.run, 1)


def test_unpacking_that_fails_leaves_nothing(tmp_path: Path, hub: FakeHub) -> None:
    sha256 = script(hub, "print()").snapshot
    archive = tmp_path / "source.zip"
    archive.write_bytes(hub.blobs[sha256])

    def fail(_: Path) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        unpack.unpack_snapshot(archive, tmp_path / "work", None, add=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["source.zip"]


def test_an_agent_that_ends_watches_no_folder(hub: FakeHub, start_agent: Callable[..., Agent]) -> None:
    before = watches()
    agent = start_agent()
    key = hub.give(saving(hub, "until('go')"))
    hub.wait(lambda: watches() == before + 2)  # its attempts' folders, and this one's checkpoints
    agent.close()
    hub.wait(lambda: watches() == before)
    (work_of(agent, key) / "go").touch()


def watches() -> int:
    """Counts what this process watches by inotify, of which an account may have 128 by default."""
    found = 0
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += "inotify" in path.readlink().name
    return found
