"""A real run without a time limit that hangs: the alert on its page, and its end when a rank writes again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.journeys.runs import Runs
from tests.signing_in import page_client

pytestmark = pytest.mark.slow
HANGS = """
import os, time
print("one step", flush=True)
while not os.path.exists({path!r}):
    time.sleep(0.2)
while True:
    print("another step", flush=True)
    time.sleep(0.5)
"""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    # 0.2 minutes = 12 s.
    hub = Hub(tmp_path / "data", ALERT_RUN_SILENT_MINUTES="0.2")
    try:
        hub.start()
        yield Runs(hub)
    finally:
        try:
            hub.cancel_all()
        finally:
            hub.stop()


def firing(runs: Runs) -> list[dict[str, Any]]:
    found = runs.get("/alerts/?state=firing&kind=run_silent")["results"]
    return list(found)


def test_a_run_that_hangs_has_an_alert_until_it_writes_again(runs: Runs, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    run = runs.script(HANGS.format(path=str(go_on)))
    runs.until(run, "Running")
    eventually(lambda: firing(runs), 90, "the alert fires")
    (alert,) = firing(runs)
    number = runs.detail(run)["number"]
    assert alert["run"] == run
    assert f"run {number} has given no output and no metric" in alert["sentence"]
    assert "Silent the longest: rank 0 on " in alert["sentence"]
    page = page_client(runs.hub).get(f"/runs/{number}/").text
    assert "Warning: Run silent" in page
    go_on.touch()
    eventually(lambda: not firing(runs), 60, "the alert clears by itself")
    assert runs.detail(run)["state"] == "Running"
