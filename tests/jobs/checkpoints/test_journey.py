"""Checkpoints leave the node while the run runs; the next attempt, or another run, begins with the newest."""

from __future__ import annotations

import pytest

from tests.hub import Hub, eventually
from tests.journeys.runs import Runs

pytestmark = pytest.mark.slow

# Saves two checkpoints and fails, unless it finds one.
SAVES = """
import os, pathlib, sys
folder = pathlib.Path(os.environ['TRAINHUB_CHECKPOINT_DIR'])
there = sorted(path.name for path in folder.iterdir())
print('there:', there, [(folder / name).read_text() for name in there], flush=True)
if there:
    sys.exit(0)
for epoch in (1, 2):
    (folder / f'.new').write_text(f'weights of epoch {epoch}')
    (folder / f'.new').rename(folder / f'epoch-{epoch}.pt')
sys.exit(3)
"""
# Saves one, and trains on until it is ended.
WAITS = """
import os, pathlib, time
folder = pathlib.Path(os.environ['TRAINHUB_CHECKPOINT_DIR'])
there = sorted(path.name for path in folder.iterdir())
print('there:', there, flush=True)
(folder / '.new').mkdir()
(folder / '.new' / 'a.distcp').write_text('shard')
(folder / '.new' / '.metadata').write_text('all')
(folder / '.new').rename(folder / f'step-{7 + len(there)}')
print('saved', flush=True)
time.sleep(0 if there else 600)
"""


@pytest.fixture(scope="module")
def runs(hub: Hub) -> Runs:
    return Runs(hub)


def checkpoints(runs: Runs, run: str) -> list[dict[str, object]]:
    return [dict(row) for row in runs.get(f"/runs/{run}/checkpoints/")]


def test_a_retry_begins_with_the_newest_checkpoint(runs: Runs) -> None:
    run = runs.script(SAVES, limits={"retries": 1})
    ended = runs.ended(run)
    log = runs.log(run).decode()
    assert ended["state"] == "Completed", (ended["sentence"], log)
    assert log.strip() == "there: ['epoch-2.pt'] ['weights of epoch 2']"
    rows = {row["name"]: row for row in checkpoints(runs, run)}
    assert {row["state"] for row in rows.values()} == {"complete"}
    assert rows["epoch-2.pt"]["attempt"] == 1


def test_a_canceled_run_is_resumed_by_another(runs: Runs) -> None:
    run = runs.script(WAITS)
    saved = eventually(lambda: [row for row in checkpoints(runs, run) if row["state"] == "complete"], 60)
    assert [(row["name"], row["sign"], row["files"]) for row in saved] == [("step-7", "metadata", 2)]
    runs.client.post(f"/api/v1/runs/{run}/cancel/")
    assert runs.ended(run)["state"] == "Canceled"
    resumed = runs.script(WAITS, checkpoint={"resume_from": run})
    assert runs.ended(resumed)["state"] == "Completed"
    assert "there: ['step-7']" in runs.log(resumed).decode()
    first = checkpoints(runs, resumed)[0]
    assert (first["name"], first["attempt"]) == ("step-7", 0)
