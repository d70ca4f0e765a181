"""The cause comes to a page that is open, before the run has ended, and leads to the line in the log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.journeys.runs import Runs
from tests.pages.browsing import number_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]
RAISING = """
import os, signal, time
print("step 1", flush=True)
if os.environ["RANK"] == "1":
    time.sleep(3)
    raise ValueError("shard 1 is <b>empty</b>")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
"""
TWO = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 1}


def test_the_cause_appears_on_the_open_page_while_the_gang_is_being_ended(page: Any, hub: Hub) -> None:
    runs = Runs(hub)
    run = runs.script(RAISING, distribution=TWO, limits={"grace_s": 20})
    page.goto(f"/runs/{number_of(hub, run)}/")
    page.evaluate("window.sameDocument = true")
    page.locator(".th-cause h2").wait_for(timeout=30_000)
    assert page.locator(".th-cause h2").inner_text() == "ValueError: shard 1 is <b>empty</b>"
    assert "the other ranks are being stopped" in page.locator(".th-cause-where").inner_text()
    page.wait_for_selector("#run-header .th-run-head .th-pill:has-text('Failed')", timeout=60_000)
    assert page.evaluate("window.sameDocument"), "nobody has loaded the page again"
    page.click(".th-cascade summary")
    ended = ["ended by TrainHub", "0"]
    eventually(
        lambda: page.locator(".th-cascade li").inner_text().split("\n") == ended,
        what="the other rank has ended",
    )
    page.click(".th-cause a")
    page.wait_for_selector(".log-current")
    assert page.locator(".log-current").inner_text().split("\n") == [
        "2",
        "Traceback (most recent call last):",
    ]
