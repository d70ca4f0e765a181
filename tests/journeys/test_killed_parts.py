"""The hub or its worker is away while there are runs: training goes on, and nothing of its log is lost or
doubled. tests/platform/test_healing.py kills each part in the middle of a run."""

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
number, end = 0, os.environ.get("END_FILE")
while not os.path.exists(end) if end else time.monotonic() < deadline:
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


def test_a_run_started_while_the_worker_is_dead_starts_when_it_is_back(own_runs: Runs) -> None:
    own_runs.hub.kill("worker", wait=False)
    assert own_runs.ended(own_runs.script("print('late', flush=True)"))["state"] == "Completed"


def test_ctrl_c_leaves_training_running_and_the_next_up_finds_it(own_runs: Runs, tmp_path: Path) -> None:
    runs, own_hub, end = own_runs, own_runs.hub, tmp_path / "end"
    # It goes on for as long as the hub takes to end.
    run = runs.script(COUNTING, environment_variables={"END_FILE": str(end)})
    pid = int(runs.says(run, b"line 50").split()[1])
    written = runs.file_on_node(run)
    try:
        assert own_hub.stop() == 0
        assert alive(pid)
        end.touch()
        eventually(lambda: b"counted to" in Path(written).read_bytes(), what="training ends without a hub")
    finally:
        end.touch()
        own_hub.start()
    assert runs.ended(run)["state"] == "Completed"
    assert sha256(runs.log(run)) == sha256(written.read_bytes())
