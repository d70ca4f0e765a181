"""Outputs that go to a datastore, while the run runs: what its script has left alone is there before it
ends."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import script
from tests.node.hub import FakeHub
from tests.node.outputs.test_early import UNTIL, go
from trainhub_launch.data.outputs import StoreFolder
from trainhub_launch.data.stores import folder_store
from trainhub_node import records
from trainhub_node.agent import Agent
from trainhub_node.attempts.attempt_list import Key
from trainhub_node.outputs import early
from trainhub_node.outputs.record import OutputRecord
from trainhub_node.rundir import RunDir


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "SCAN_S", 0.1)
    monkeypatch.setattr(early, "QUIET_S", 0.5)
    monkeypatch.setattr(early, "AGAIN_S", 0.2)
    # Ten times as long as the process of a busy machine takes would be longer than the tests wait.
    monkeypatch.setattr(early, "SHARE", 1.0)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    return folder


def give(hub: FakeHub, results: Path, code: str) -> Key:
    place = StoreFolder(folder_store(str(results)), f"{results}/run/attempt_1")
    return hub.give(replace(script(hub, UNTIL + code), outputs=place))


def there(hub: FakeHub, results: Path) -> dict[str, bytes]:
    """The files in the datastore, as far as the hub knows them as they are."""
    folder = results / "run" / "attempt_1"
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    known = {name: file["sha256"] for name, file in hub.stored_outputs.files.items()}
    return {name: content for name, content in files.items() if known.get(name) == sha256(content)}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_it_follows_what_the_script_writes_and_removes(hub: FakeHub, agent: Agent, results: Path) -> None:
    key = give(
        hub,
        results,
        "(outputs / 'deep').mkdir()\n"
        "(outputs / 'deep/last.pt').write_text('epoch 1')\n"
        "(outputs / 'old.pt').write_text('epoch 0')\n"
        "until('next')\n"
        "(outputs / 'deep/last.pt').write_text('epoch 2')\n"
        "(outputs / 'old.pt').unlink()\n"
        "until('end')\n",
    )
    hub.wait(lambda: there(hub, results) == {"deep/last.pt": b"epoch 1", "old.pt": b"epoch 0"})
    assert hub.facts[key].phase == "running"
    go(agent, key, "next")
    hub.wait(lambda: there(hub, results) == {"deep/last.pt": b"epoch 2"})
    assert hub.facts[key].phase == "running"
    assert not (results / "run/attempt_1/old.pt").exists()
    go(agent, key, "end")
    fact = hub.wait_done(key)
    assert (fact.outputs, fact.warnings) == ((), ())
    assert there(hub, results) == {"deep/last.pt": b"epoch 2"}


def test_what_was_changed_or_removed_last_is_what_counts(hub: FakeHub, agent: Agent, results: Path) -> None:
    key = give(
        hub,
        results,
        "model, old = outputs / 'model.pt', outputs / 'old.pt'\n"
        "model.write_text('half')\nold.write_text('old')\n"
        "until('end')\nmodel.write_text('whole')\nold.unlink()\n(outputs / 'new.txt').write_text('new')\n",
    )
    hub.wait(lambda: len(there(hub, results)) == 2)
    go(agent, key, "end")
    fact = hub.wait_done(key)
    assert (fact.outputs, fact.warnings) == ((), ())
    assert there(hub, results) == {"model.pt": b"whole", "new.txt": b"new"}
    assert sorted(hub.stored_outputs.files) == ["model.pt", "new.txt"]


def test_a_datastore_that_is_not_there_early_is_tried_again(
    hub: FakeHub, agent: Agent, results: Path
) -> None:
    results.rmdir()
    key = give(hub, results, "(outputs / 'a.txt').write_text('one')\nuntil('end')\n")
    hub.wait_log(key, b"")
    hub.wait_phase(key, "running")
    results.mkdir()
    hub.wait(lambda: there(hub, results) == {"a.txt": b"one"})
    go(agent, key, "end")
    assert hub.wait_done(key).warnings == ()


def test_what_it_refuses_at_the_end_is_on_the_hub_as_it_is_then(
    hub: FakeHub, agent: Agent, results: Path
) -> None:
    key = give(
        hub,
        results,
        "model = outputs / 'model.pt'\nmodel.write_text('half')\nuntil('end')\nmodel.write_text('whole')\n",
    )
    hub.wait(lambda: there(hub, results) == {"model.pt": b"half"})
    results.rename(results.with_name("unmounted"))
    go(agent, key, "end")
    fact = hub.wait_done(key)
    assert {file.path: hub.output(key, file.path) for file in fact.outputs} == {"model.pt": b"whole"}
    assert fact.warnings[0].startswith("Outputs could not be written to the datastore")


def test_nothing_is_removed_there_when_the_whole_folder_of_the_run_is_gone(tmp_path: Path) -> None:
    folder = RunDir(str(tmp_path), "a" * 32, 1)
    Path(folder.work).mkdir(parents=True)
    records.write(folder.outputs_record, {"elsewhere": {"model.pt": ["v1", 1, "b" * 64]}})
    assert OutputRecord(folder).removed_elsewhere(set()) == ["model.pt"]
    Path(folder.work).rmdir()
    assert OutputRecord(folder).removed_elsewhere(set()) == []
