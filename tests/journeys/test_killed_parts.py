"""kill -9 of the hub's parts in the middle of a run: training goes on, and nothing of its log is lost or
doubled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import Hub, eventually
from tests.journeys.runs import Runs, alive, sha256

pytestmark = pytest.mark.slow
COUNTING = """
import os, time
print("pid", os.getpid(), flush=True)
deadline = time.monotonic() + 8
number = 0
while time.monotonic() < deadline:
    number += 1
    print("line", number, "x" * (number % 300), flush=True)
    time.sleep(0.002)
print("counted to", number, flush=True)
"""


@pytest.fixture(scope="module")
def own_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Runs of a hub that only this file breaks. Each test leaves all parts running, and a hub costs ten
    seconds of CPU to start."""
    own = Hub(tmp_path_factory.mktemp("killed") / "data")
    try:
        yield Runs(own.start())
    finally:
        own.stop()


@pytest.mark.parametrize("part", ["web", "worker", "agent", "valkey"])
def test_the_run_goes_on_and_the_log_is_the_nodes_file(own_runs: Runs, part: str) -> None:
    run = own_runs.script(COUNTING)
    own_runs.says(run, b"line 50")
    own_runs.hub.kill(part)
    ended = own_runs.ended(run)
    assert ended["state"] == "Completed", ended["sentence"]
    stored, written = own_runs.log(run), own_runs.file_on_node(run).read_bytes()
    assert b"counted to" in stored
    assert sha256(stored) == sha256(written)


def test_a_run_started_while_the_worker_is_dead_starts_when_it_is_back(own_runs: Runs) -> None:
    own_runs.hub.kill("worker", wait=False)
    assert own_runs.ended(own_runs.script("print('late', flush=True)"))["state"] == "Completed"


def test_ctrl_c_leaves_training_running_and_the_next_up_finds_it(own_runs: Runs) -> None:
    runs, own_hub = own_runs, own_runs.hub
    run = runs.script(COUNTING)
    pid = int(runs.says(run, b"line 50").split()[1])
    written = runs.file_on_node(run)
    assert own_hub.stop() == 0
    assert alive(pid)
    eventually(lambda: b"counted to" in Path(written).read_bytes(), what="training ends without a hub")
    own_hub.start()
    assert runs.ended(run)["state"] == "Completed"
    assert sha256(runs.log(run)) == sha256(written.read_bytes())
