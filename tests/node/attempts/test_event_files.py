"""TensorBoard's event files reach the hub while they grow, wherever the script writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.builders import script
from tests.node.hub import FakeHub
from trainhub_node.agent import Agent
from trainhub_node.attempts import log_tail
from trainhub_node.attempts.log_tail import LogTail
from trainhub_node.rundir import RunDir

NAME = "events.out.tfevents.1700000000.host.7.0"
GROWS = f"""
import os, time
os.makedirs("outputs/tb")
open("outputs/model.bin", "wb").write(b"weights")
with open("outputs/tb/{NAME}", "wb", buffering=0) as file:
    file.write(b"\\0one")
    while not os.path.exists("go"):
        time.sleep(0.01)
    file.write(b"\\xfftwo")
"""


@pytest.fixture
def rundir(tmp_path: Path) -> RunDir:
    value = RunDir(str(tmp_path), "a" * 32, 1)
    for folder in (value.logs, f"{value.work}/logs", f"{value.work}/outputs"):
        Path(folder).mkdir(parents=True)
    return value


def write(rundir: RunDir, name: str, data: bytes = b"x") -> Path:
    path = Path(rundir.work, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


class TestBelowOutputs:
    def test_they_come_while_the_run_goes_on_and_nothing_else_does(self, hub: FakeHub, agent: Agent) -> None:
        value = script(hub, GROWS)
        key = hub.give(value)
        hub.wait(lambda: hub.log(key, f"outputs/tb/{NAME}") == b"\0one")
        (agent.settings.attempts / f"{value.run}-1" / "work" / "go").touch()

        fact = hub.wait_done(key)

        assert hub.log(key, f"outputs/tb/{NAME}") == hub.output(key, f"tb/{NAME}") == b"\0one\xfftwo"
        assert [name for name in fact.logs if name.startswith("outputs/")] == [f"outputs/tb/{NAME}"]

    def test_neither_links_nor_strange_names_are_followed(self, rundir: RunDir, tmp_path: Path) -> None:
        (tmp_path / NAME).write_bytes(b"another's")
        Path(rundir.work, "outputs", NAME).symlink_to(tmp_path / NAME)
        write(rundir, f"outputs/a\nb/{NAME}")
        assert LogTail(rundir).sizes() == {}


class TestMany:
    def test_do_not_crowd_out_logs(self, rundir: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(log_tail, "MAX_USER_LOGS", 1)
        monkeypatch.setattr(log_tail, "MAX_EVENT_FILES", 2)
        for name in ("logs/z.txt", *(f"logs/{index}.tfevents" for index in range(3))):
            write(rundir, name)
        tail = LogTail(rundir)
        assert list(tail.sizes()) == ["logs/0.tfevents", "logs/1.tfevents", "logs/z.txt"]
        assert not tail.has_too_many
