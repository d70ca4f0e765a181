"""Outputs of a run that runs: what its script has left alone is at the hub before it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.builders import script
from tests.node.hub import FakeHub
from trainhub_node import records
from trainhub_node.agent import Agent
from trainhub_node.attempts.attempt_list import Key
from trainhub_node.outputs import early
from trainhub_node.outputs.record import OutputRecord
from trainhub_node.rundir import RunDir

UNTIL = """
import os, pathlib, time
outputs = pathlib.Path('outputs')
def until(name):
    while not os.path.exists(name): time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "SCAN_S", 0.1)
    monkeypatch.setattr(early, "QUIET_S", 0.5)
    monkeypatch.setattr(early, "AGAIN_S", 0.2)


def give(hub: FakeHub, code: str) -> Key:
    return hub.give(script(hub, UNTIL + code))


def go(agent: Agent, key: Key, name: str) -> None:
    (Path(agent.settings.attempts) / f"{key[0]}-{key[1]}" / "work" / name).touch()


def at_hub(hub: FakeHub, key: Key) -> dict[str, bytes]:
    return {file.path: hub.output(key, file.path) for file in hub.facts[key].outputs}


def test_what_is_left_alone_is_at_the_hub_while_the_run_runs(hub: FakeHub, agent: Agent) -> None:
    key = give(
        hub,
        "(outputs / 'first.txt').write_text('one')\n"
        "growing = open('outputs/growing.csv', 'w', buffering=1)\n"
        "while not os.path.exists('end'):\n"
        "    growing.write('row ')\n"
        "    growing.flush()\n"
        "    time.sleep(0.05)\n",
    )
    hub.wait(lambda: key in hub.facts and hub.facts[key].outputs)
    assert at_hub(hub, key) == {"first.txt": b"one"}
    assert hub.facts[key].phase == "running"
    go(agent, key, "end")
    fact = hub.wait_done(key)
    assert [file.path for file in fact.outputs] == ["first.txt", "growing.csv"]
    assert at_hub(hub, key)["growing.csv"].startswith(b"row row")
    assert len(hub.chunk_sizes) == 2, "what is there already is not sent again at the end"


def test_a_changed_file_is_sent_again_and_a_removed_one_is_forgotten(hub: FakeHub, agent: Agent) -> None:
    key = give(
        hub,
        "(outputs / 'last.pt').write_text('epoch 1')\n"
        "(outputs / 'old.pt').write_text('epoch 0')\n"
        "until('next')\n"
        "(outputs / 'last.pt').write_text('epoch 2')\n"
        "(outputs / 'old.pt').unlink()\n"
        "until('end')\n",
    )
    hub.wait(lambda: key in hub.facts and len(hub.facts[key].outputs) == 2)
    assert at_hub(hub, key) == {"last.pt": b"epoch 1", "old.pt": b"epoch 0"}
    go(agent, key, "next")
    hub.wait(lambda: at_hub(hub, key) == {"last.pt": b"epoch 2"})
    assert hub.facts[key].phase == "running"
    go(agent, key, "end")
    hub.wait_done(key)
    assert at_hub(hub, key) == {"last.pt": b"epoch 2"}


def test_what_was_changed_last_is_what_counts(hub: FakeHub, agent: Agent) -> None:
    key = give(
        hub,
        "model = outputs / 'model.pt'\nmodel.write_text('half')\nuntil('end')\nmodel.write_text('whole')\n",
    )
    hub.wait(lambda: key in hub.facts and hub.facts[key].outputs)
    go(agent, key, "end")
    hub.wait_done(key)
    assert at_hub(hub, key) == {"model.pt": b"whole"}


def test_what_cannot_be_read_any_more_is_not_forgotten(tmp_path: Path) -> None:
    folder = RunDir(str(tmp_path), "a" * 32, 1)
    deep = Path(folder.work) / "outputs" / "deep"
    deep.mkdir(parents=True)
    (deep / "kept.txt").touch()
    # Of the same name as an output, but not among the outputs.
    (Path(folder.work) / "gone.txt").touch()
    files = ("deep/kept.txt", "gone.txt", "deep/gone.txt", "logs/gone.log")
    records.write(folder.outputs_record, {"files": [{"path": path} for path in files]})
    record = OutputRecord(folder)
    # A walk finds nothing in a folder that cannot be read.
    assert record.forget_removed(set())
    assert list(record.files) == ["deep/kept.txt"]
    assert not record.forget_removed(set())
